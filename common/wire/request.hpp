// Request: a request line, parsed. PROTOCOL.md beside this file specifies all verbs and options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/expr/expression.hpp"
#include "common/result.hpp"

namespace gloved::wire {

/// Maximum length of a request line, without its LF.
inline constexpr std::size_t kMaxLineBytes = 65536;

/// What a request asks for; PROTOCOL.md has a section for each.
enum class Verb {
    near,
    sim,
    dist,
    vec,
    analogy,
    odd,
    rank,
    matrix,
    prefix,
    nearvec,
    has,
    models,
    use,
    lists,
    stats,
    ping,
    format,
    reload,
    help,
    quit,
};

/// The name of a verb in requests, in capitals, e.g. «NEAR».
std::string_view verb_name(Verb verb);
/// The verb whose name is exactly `token`; nullopt for any other token, «near» too.
std::optional<Verb> find_verb(std::string_view token);
/// The first verb that has an option of this name, e.g. «k»; nullopt if none has.
std::optional<Verb> find_verb_with_option(std::string_view name);

/// Scaling of an expression's vectors before they are added: none, or each to length 1.
enum class Norm { raw, unit };
/// An optional column. Of a hit besides word and score: row number, frequency rank, or vector's
/// length. Of RANK: the score of its second word, and whether that is eligible.
enum class Field { row, rank, norm, score, eligible };

/// The name of a field in requests and replies, e.g. «row».
std::string_view name_of(Field field);
/// Formula of an analogy: 3CosAdd or 3CosMul.
enum class Method { add, mul };
/// What MATRIX computes: cosine or squared Euclidean distance.
enum class Metric { cosine, sqeuclidean };
/// How VEC writes a vector: its components as decimals, or their bytes in base64.
enum class Encoding { decimal, base64 };
/// What becomes of a word that the model does not have: an unknown_word, or it is left out.
enum class Unknown { error, skip };
/// Whether a word may stand for a word of the model that differs in case alone.
enum class WordCase { exact, ignore };
/// Form of replies: lines of text, or one JSON object per reply.
enum class Form { text, json };

/// Maximum number of words in a MATRIX request.
inline constexpr std::size_t kMaxMatrixWords = 4096;

/// Number of hits if a request does not say k.
inline constexpr std::size_t kDefaultK = 10;

/// Options of all verbs. parse_request refuses an option that PROTOCOL.md does not list for the
/// verb.
struct Options {
    std::size_t k = kDefaultK;         ///< maximum number of hits
    std::optional<double> min;         ///< answer only hits with at least this score
    std::optional<std::uint32_t> top;  ///< answer only the `top` most frequent words
    std::string prefix;                ///< answer only words that begin with these bytes
    std::vector<std::string> within;   ///< answer only words that are in all of these lists
    std::vector<std::string> without;  ///< and in none of these
    Norm norm = Norm::raw;
    bool exclude_inputs = true;  ///< do not answer the words of the request
    std::size_t only = 0;        ///< number of words in Request::chosen; 0: all words are eligible
    std::string engine;          ///< name of an engine; empty: the model's first
    std::string model;           ///< name of a model; empty: the connection's
    std::vector<Field> fields;
    bool certify = false;  ///< add to the status line how the answer was found
    Method method = Method::add;
    Metric metric = Metric::cosine;
    Encoding encoding = Encoding::decimal;
    std::optional<Unknown> unknown;     ///< none: the daemon's
    std::optional<WordCase> word_case;  ///< none: the daemon's
};

/// What SIM, DIST, RANK and ODD compare: a word, or a group of words, which is an expression in
/// parentheses.
struct Argument {
    std::string text;  ///< the word, or the group as it was typed, with spaces for TABs
    std::vector<expr::Term> terms;  ///< of a group, never empty then; empty for a word
};

/// Whether a verb's words are Arguments.
bool takes_groups(Verb verb);

/// A parsed request.
struct Request {
    Verb verb = Verb::near;
    Options options;
    std::vector<std::string> chosen;  ///< of only=: answer only these words
    std::vector<expr::Term> terms;    ///< of NEAR
    std::vector<float> values;        ///< of NEARVEC: its numbers, or those of base64=
    std::vector<Argument> arguments;  ///< of a verb that takes groups
    std::vector<std::string> words;   ///< of all other verbs: the tokens after the options and
                                      ///< the chosen words
    Form form = Form::text;           ///< of FORMAT
};

/// Parses a line without its line end. The first token is a verb if it is unquoted and find_verb
/// knows it; otherwise the whole line is an expression for NEAR. Error: bad_request.
Result<Request> parse_request(std::string_view line);

}  // namespace gloved::wire
