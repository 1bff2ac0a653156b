// Request: a parsed request line. PROTOCOL.md beside this file specifies it. No sockets here.
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

/// Maximum length of a request line, without its LF.
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

/// Name of a verb: «NEAR». All names are reserved: such a word must be quoted.
std::string_view verb_name(Verb verb);
/// The verb with exactly the name `token`, in upper case.
std::optional<Verb> find_verb(std::string_view token);

/// Scaling of an expression's rows before they are added.
enum class Norm { raw, unit };
/// An optional column of a hit, besides word and score.
enum class Field { row, rank, norm };
/// Formula of an analogy: 3CosAdd or 3CosMul.
enum class Method { add, mul };
/// What MATRIX computes: cosine or squared Euclidean distance.
enum class Metric { cosine, sqeuclidean };
/// Form of replies: lines of text, or one JSON object per reply.
enum class Form { text, json };

/// Maximum number of words of MATRIX.
inline constexpr std::size_t kMaxMatrixWords = 4096;

inline constexpr std::size_t kDefaultK = 10;

/// Options of all verbs. A verb takes only those that PROTOCOL.md lists for it.
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

/// Parses a line without its line end. The first token is a verb if it equals a name of the list;
/// otherwise the line is NEAR's expression. Error: bad_request, with a message of one line.
Result<Request> parse_request(std::string_view line);

}  // namespace gloved::wire
