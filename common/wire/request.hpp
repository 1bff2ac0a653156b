// One request line, parsed. PROTOCOL.md beside this file is the specification. No sockets here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/expr/expression.hpp"
#include "common/result.hpp"

namespace gloved::wire {

/// The longest request line, without its LF.
inline constexpr std::size_t kMaxLineBytes = 65536;

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
    stats,
    ping,
    format,
    reload,
    help,
    quit,
};

/// «NEAR» and so on. Every name in this list is taken: a word that looks like one is quoted.
std::string_view verb_name(Verb verb);
/// The verb whose name `token` is exactly, upper-case.
std::optional<Verb> find_verb(std::string_view token);

/// How an expression's rows are scaled before they are added.
enum class Norm { raw, unit };
/// A column that a hit may have beyond word and score.
enum class Field { row, rank, norm };
/// How an analogy's words are put together: 3CosAdd or 3CosMul.
enum class Method { add, mul };
/// What MATRIX compares rows by: cosine, or squared Euclidean distance.
enum class Metric { cosine, sqeuclidean };
/// How a connection's replies are written: lines of text, or one JSON object a reply.
enum class Form { text, json };

/// The most words of one MATRIX.
inline constexpr std::size_t kMaxMatrixWords = 4096;

inline constexpr std::size_t kDefaultK = 10;

/// The options of all verbs. A verb takes only those that PROTOCOL.md lists for it.
struct Options {
    std::size_t k = kDefaultK;
    std::optional<double> min;         ///< smallest score that is eligible
    std::optional<std::uint32_t> top;  ///< only ranks below it are eligible
    std::string prefix;                ///< only keys that start so are eligible
    Norm norm = Norm::raw;
    bool exclude_inputs = true;
    std::string engine;  ///< empty: the daemon's
    std::string model;   ///< empty: the connection's
    std::vector<Field> fields;
    bool certify = false;
    Method method = Method::add;
    Metric metric = Metric::cosine;
};

struct Request {
    Verb verb = Verb::near;
    Options options;
    std::vector<expr::Term> terms;   ///< NEAR
    std::vector<float> values;       ///< NEARVEC
    std::vector<std::string> words;  ///< all other verbs: the tokens after the options
    Form form = Form::text;          ///< FORMAT
};

/// Parses a line without its line end. The first token is a verb if it is exactly one of the list;
/// otherwise the whole line is NEAR's expression. Errors: bad_request; the message is for people
/// and fits one line.
Result<Request> parse_request(std::string_view line);

}  // namespace gloved::wire
