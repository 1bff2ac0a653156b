#include "tools/verify/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/list_file.hpp"
#include "common/input_file.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "common/text_lines.hpp"
#include "common/wire/json_string.hpp"
#include "kernels/engine.hpp"
#include "tools/source/ordered_pipeline.hpp"
#include "tools/verify/audit_question.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using format::Row;
using kernels::Hit;
using nlohmann::json;
using wire::Verb;

/// What a list's file is for the model: by the words as they stand, and where case is ignored. A
/// daemon looks lists up by its option --case, and the checksum tells which.
using ListReadings = std::array<format::ListFile, 2>;
using ListFiles = std::map<std::string, ListReadings>;

std::string bytes_of(const json& word) {
    return wire::bytes_of_json_string(word.get<std::string>());
}

bool has_same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Answers questions and compares. Any number of threads may use it.
class Auditor {
  public:
    Auditor(const Model& model, const ListFiles& lists, AuditWords& words)
        : model_(model), lists_(lists), words_(words), norms_(oracle_norms(model)) {}

    /// Whether a reply is one of those that are checked.
    static bool is_answer(const json& reply) {
        if (reply.contains("request")) return true;
        if (!reply.at("ok").get<bool>()) return false;
        const auto verb = wire::find_verb(reply.at("verb").get<std::string>());
        return !verb || verb == Verb::near || verb == Verb::nearvec || verb == Verb::analogy;
    }

    /// Error: mismatch, which says what is wrong.
    Status check(const json& reply) {
        if (!reply.contains("request"))
            return wrong("it carries no request, so nobody can check it; ask with certify=1");
        if (!reply.at("ok").get<bool>()) return wrong("it is an answer and a refusal");
        if (Status same = check_model(reply); !same) return same;
        const auto line = bytes_of(reply["request"]);
        auto question = read_audit_question(model_, words_, line);
        if (!question) return question.error();
        if (wire::verb_name(question->request.verb) != reply.at("verb").get<std::string>())
            return wrong("its request is of another verb");
        if (Status same = check_lists(reply, *question); !same) return same;
        if (Status same = check_notes(reply, *question); !same) return same;
        const auto hits = answer(*question);
        if (!hits) return hits.error();
        if (Status same = check_hits(reply, *question, *hits); !same) return same;
        return check_certificate(reply, *question, *hits);
    }

  private:
    Status check_model(const json& reply) const {
        const auto generation = reply.at("generation").get<std::string>();
        const std::string own = format::hex(model_.generation());
        if (generation != own) {
            return wrong(
                fmt::format("the answer of another model: of generation {}, this one has {}",
                            printable(generation), own));
        }
        if (reply.at("rows") != model_.rows())
            return wrong(fmt::format("the model has {} rows", model_.rows()));
        return {};
    }

    /// Compares the checksums of the lists that the question names, and sets AuditQuestion::lists.
    Status check_lists(const json& reply, AuditQuestion& question) const {
        const wire::Options& options = question.request.options;
        std::set<std::string> named(options.within.begin(), options.within.end());
        named.insert(options.without.begin(), options.without.end());
        std::map<std::string, std::string> told;
        const json& lists = reply.at("lists");
        for (const json& list : lists)
            told[bytes_of(list.at("list"))] = list.at("checksum").get<std::string>();
        for (const std::string& name : named) {
            const auto checksum = told.find(name);
            if (checksum == told.end())
                return wrong(fmt::format("no checksum of the list {}", printable(name)));
            const auto list = lists_.find(name);
            if (list == lists_.end()) {
                return wrong(
                    fmt::format("the list {0} is missing: give it with --list {0}=FILE", name));
            }
            const auto& readings = list->second;
            const auto is_told = [&](const format::ListFile& reading) {
                return format::hex(reading.checksum) == checksum->second;
            };
            const auto same = std::ranges::find_if(readings, is_told);
            if (same == readings.end()) {
                return wrong(fmt::format("another list {}: of checksum {}, the file has {}", name,
                                         printable(checksum->second),
                                         format::hex(readings[0].checksum)));
            }
            question.lists[name] = &same->rows;
        }
        if (lists.is_array() && lists.size() == named.size()) return {};
        return wrong("it names other lists than its request");
    }

    /// What the reply tells of words that were left out or replaced.
    static Status check_notes(const json& reply, const AuditQuestion& question) {
        std::vector<std::string> skipped;
        if (const auto told = reply.find("skipped"); told != reply.end()) {
            for (const json& word : *told) skipped.push_back(bytes_of(word));
        }
        std::vector<std::pair<std::string, std::string>> replaced;
        if (const auto told = reply.find("replaced"); told != reply.end()) {
            for (const json& pair : *told)
                replaced.emplace_back(bytes_of(pair.at("word")), bytes_of(pair.at("by")));
        }
        const std::uint64_t unlisted = reply.contains("unlisted") ? count(reply, "unlisted") : 0;
        if (skipped == question.skipped && replaced == question.replaced &&
            unlisted == question.unlisted)
            return {};
        return wrong("other words of the request were left out or replaced");
    }

    /// Which rows of the question's filters an answer may have.
    class Filter {
      public:
        Filter(const Model& model, const AuditQuestion& question)
            : model_(model),
              options_(question.request.options),
              chosen_(question.chosen),
              inputs_(question.rows) {
            for (const std::string& name : distinct(options_.within))
                within_.push_back(question.lists.at(name));
            for (const std::string& name : distinct(options_.without))
                without_.push_back(question.lists.at(name));
            std::ranges::sort(inputs_);
        }
        bool takes(Row row, double score) const {
            if (options_.top && model_.ranks()[row] >= *options_.top) return false;
            if (options_.min && !(score >= *options_.min)) return false;
            if (!model_.key(row).starts_with(options_.prefix)) return false;
            const auto has = [&](const auto* rows) {
                return std::ranges::binary_search(*rows, row);
            };
            if (options_.only > 0 && !has(&chosen_)) return false;
            if (!std::ranges::all_of(within_, has)) return false;
            if (std::ranges::any_of(without_, has)) return false;
            return !options_.exclude_inputs || !has(&inputs_);
        }

      private:
        static std::set<std::string> distinct(const std::vector<std::string>& names) {
            return {names.begin(), names.end()};
        }

        const Model& model_;
        const wire::Options& options_;
        const std::vector<Row>& chosen_;
        std::vector<Row> inputs_;
        std::vector<const std::vector<Row>*> within_;
        std::vector<const std::vector<Row>*> without_;
    };

    /// The hits. Error: mismatch, if there is no direction to search in.
    Result<std::vector<Hit>> answer(const AuditQuestion& question) const {
        const wire::Request& request = question.request;
        const Filter filter(model_, question);
        const auto eligible = [&](Row row, double score) { return filter.takes(row, score); };
        const auto is_zero = [](const std::vector<float>& vector) {
            return std::ranges::all_of(vector, [](float value) { return value == 0; });
        };
        const auto row_of = [&](std::size_t place) {
            const auto vector = model_.vector(question.rows[place]);
            return std::vector<float>(vector.begin(), vector.end());
        };
        if (request.verb == Verb::analogy && request.options.method == wire::Method::mul) {
            const std::array<std::vector<float>, 3> vectors = {row_of(0), row_of(1), row_of(2)};
            if (std::ranges::any_of(vectors, is_zero)) return wrong("a word has a zero vector");
            return oracle_top(oracle_cosmul(model_, norms_, {vectors[1], vectors[2]}, {vectors[0]}),
                              request.options.k, eligible);
        }
        const std::vector<float> vector = query_vector(question);
        if (vector.size() != model_.dim())
            return wrong(fmt::format("{} numbers; the model's vectors have {}", vector.size(),
                                     model_.dim()));
        if (is_zero(vector)) return wrong("the query vector is zero");
        if (!std::ranges::all_of(vector, [](float value) { return std::isfinite(value); }))
            return wrong("the query vector is not finite");
        return oracle_top(oracle_scores(model_, norms_, vector), request.options.k, eligible);
    }

    std::vector<float> query_vector(const AuditQuestion& question) const {
        const wire::Request& request = question.request;
        const auto& rows = question.rows;
        switch (request.verb) {
            case Verb::nearvec:
                return request.values;
            case Verb::analogy:
                return oracle_query(model_, {{1, rows[1]}, {-1, rows[0]}, {1, rows[2]}}, true);
            default:
                return oracle_query(model_, question.weights,
                                    request.options.norm == wire::Norm::unit);
        }
    }

    Status check_hits(const json& reply, const AuditQuestion& question,
                      const std::vector<Hit>& hits) const {
        const json& results = reply.at("results");
        for (std::size_t i = 0; i < std::min(hits.size(), results.size()); ++i) {
            if (Status same = check_hit(results[i], question, hits[i]); !same)
                return wrong(fmt::format("place {} {}", i + 1, same.error().message));
        }
        if (results.size() == hits.size()) return {};
        return wrong(fmt::format("{} words for {}", results.size(), hits.size()));
    }

    Status check_hit(const json& result, const AuditQuestion& question, const Hit& hit) const {
        const std::string word = bytes_of(result.at("word"));
        const auto score = result.at("score").get<double>();
        const std::string_view key = model_.key(hit.row);
        // JSON has 0 for −0.
        const double right = hit.score + 0.0;
        if (word != key || !has_same_bits(score, right)) {
            return wrong(fmt::format("is {} with {} for {} with {}", printable(word), score,
                                     printable(key), right));
        }
        const auto& fields = question.request.options.fields;
        const auto is_told = [&](wire::Field field, std::string_view name, const json& value) {
            return std::ranges::find(fields, field) == fields.end() || result.at(name) == value;
        };
        if (is_told(wire::Field::row, "row", hit.row) &&
            is_told(wire::Field::rank, "rank", model_.ranks()[hit.row]) &&
            is_told(wire::Field::norm, "norm", model_.norms()[hit.row]) &&
            result.size() == 2 + fields.size())
            return {};
        return wrong(
            fmt::format("has another row, rank or norm than {}", row_name(model_, hit.row)));
    }

    /// A member that is a count.
    static std::uint64_t count(const json& reply, const char* key) {
        const json& value = reply.at(key);
        if (!value.is_number_unsigned()) throw json::type_error::create(302, key, &value);
        return value.get<std::uint64_t>();
    }

    /// The k-th score, and whether the figures beside it can be true.
    Status check_certificate(const json& reply, const AuditQuestion& question,
                             const std::vector<Hit>& hits) const {
        if (hits.empty() == reply.contains("kth"))
            return wrong("a k-th score without words, or none");
        if (!hits.empty()) {
            const double kth = hits.back().score + 0.0;
            if (!has_same_bits(reply["kth"].get<double>(), kth))
                return wrong(fmt::format("the k-th score is {}, not {}", kth, reply["kth"].dump()));
        }
        if (count(reply, "rescored") < hits.size())
            return wrong("fewer rows were scored than are among the words");
        const auto pass = reply.at("pass").get<std::string>();
        if (pass == "neighbors") {
            if (is_of_neighbors(question)) return {};
            return wrong("stored neighbors do not answer such a request");
        }
        return check_bounds(reply, question.request.options, hits, pass);
    }

    /// Whether a neighbors file may have the answer.
    static bool is_of_neighbors(const AuditQuestion& question) {
        const wire::Options& options = question.request.options;
        return question.request.verb == Verb::near && question.request.terms.size() == 1 &&
               question.request.terms[0].coefficient == 1 && options.norm == wire::Norm::raw &&
               options.exclude_inputs && !options.top && !options.min && options.prefix.empty() &&
               options.within.empty() && options.without.empty() && options.only == 0;
    }

    /// What bounds ruled out.
    Status check_bounds(const json& reply, const wire::Options& options,
                        const std::vector<Hit>& hits, const std::string& pass) const {
        // Answers that people keep may be of a pass that there is no more.
        constexpr std::string_view kFormerPass = "float32";
        const auto is_pass = [&](kernels::Pass known) { return to_string(known) == pass; };
        if (pass != kFormerPass && std::ranges::none_of(kernels::kPasses, is_pass))
            return wrong("no pass is called " + printable(pass));
        const json& rejected_below = reply.at("rejected_below");
        // Of fewer words than wanted, a smallest score keeps others out.
        const double proven = hits.size() == options.k ? hits.back().score + 0.0
                              : options.min            ? *options.min
                                                       : -std::numeric_limits<double>::infinity();
        if (!rejected_below.is_null() && rejected_below.get<double>() > proven)
            return wrong("rows that were not scored may be among the words");
        const std::uint64_t scanned = count(reply, "scanned");
        const std::uint64_t survivors = count(reply, "survivors");
        const std::uint64_t rescored = count(reply, "rescored");
        const auto ruled_out = [](std::uint64_t of, std::uint64_t left) {
            return of > left ? of - left : 0;
        };
        if (std::max({scanned, survivors, rescored}) > model_.rows() ||
            count(reply, "ruled_out_by_codes") != ruled_out(scanned, survivors) ||
            count(reply, "ruled_out_by_vectors") != ruled_out(survivors, rescored))
            return wrong("the numbers of rows that were ruled out do not add up");
        return {};
    }

    const Model& model_;
    const ListFiles& lists_;
    AuditWords& words_;
    const std::vector<double> norms_;
};

/// Parses a reply. Error: mismatch, also for what readers may take for one thing or for another: a
/// name that occurs twice in an object, or bytes that some of them skip.
Result<json> parse_reply(const std::string& line) {
    constexpr int kMaxDepth = 4;  // those of lists and of results have 3
    const Error no_reply = wrong("it is no reply in JSON; ask after FORMAT json");
    // The library skips a byte order mark, and ends at a NUL.
    if (!line.starts_with('{') || line.find('\0') != std::string::npos) return no_reply;
    std::vector<std::set<std::string>> names;
    bool has_twice = false;
    bool is_deep = false;
    const auto note = [&](int depth, json::parse_event_t event, json& parsed) {
        is_deep = is_deep || depth > kMaxDepth;
        if (event == json::parse_event_t::object_start) {
            names.emplace_back();
        } else if (event == json::parse_event_t::object_end) {
            names.pop_back();
        } else if (event == json::parse_event_t::key) {
            has_twice = !names.back().insert(parsed.get<std::string>()).second || has_twice;
        }
        return true;
    };
    json parsed = json::parse(line, note, false);
    if (!parsed.is_object() || is_deep) return no_reply;
    if (has_twice) return wrong("a name occurs twice in one of its objects");
    return parsed;
}

/// A line of the file, and what is found of it.
struct Line {
    std::uint64_t number = 0;
    std::string text;
    bool is_answer = false;
    Status sound;
};

void check_line(Auditor& auditor, Line& line) try {
    line.is_answer = true;  // a line that cannot be read is not sound
    const auto reply = parse_reply(line.text);
    if (!reply) {
        line.sound = reply.error();
        return;
    }
    line.is_answer = Auditor::is_answer(*reply);
    line.sound = line.is_answer ? auditor.check(*reply) : Status();
} catch (const json::exception& error) {
    line.is_answer = true;
    line.sound = wrong(fmt::format("a member is missing or of another type: {}", error.what()));
}

Result<ListFiles> read_lists(const Model& model, const AuditChecks& checks, AuditWords& words,
                             const std::atomic<bool>& stop, const Reporter& report) {
    ListFiles lists;
    for (const AuditChecks::List& list : checks.lists) {
        auto file = InputFile::open(list.path, NoWriter::wait, &stop);
        if (!file) return file.error();
        TextLines lines(*file);
        std::array builders = {format::ListBuilder(model),
                               format::ListBuilder(model, [&](std::string_view word) {
                                   return words.find_in_other_case(word);
                               })};
        std::optional<std::string> note;
        if (Status read = format::read_list(lines, builders, &note); !read) return read.error();
        const ListReadings& readings =
            lists[list.name] = {builders[0].finish(), builders[1].finish()};
        std::string detail =
            fmt::format("{} words, {} not in the model, checksum {}", readings[0].rows.size(),
                        readings[0].missing, format::hex(readings[0].checksum));
        if (readings[1].replaced > 0) {
            detail += fmt::format("; with --case ignore {} words, {} not in the model, checksum {}",
                                  readings[1].rows.size(), readings[1].missing,
                                  format::hex(readings[1].checksum));
        }
        if (note) detail += "; " + *note;
        report({"list " + list.name, true, detail});
    }
    return lists;
}

/// Maximum length of a reply: a MATRIX of 4,096 words has 340 MB.
constexpr std::size_t kMaxReplyBytes = std::size_t{1} << 30;

/// What was found in all.
struct Tally {
    std::uint64_t answers = 0;
    std::uint64_t wrong = 0;
    std::uint64_t others = 0;
};

Result<Tally> check_lines(TextLines& lines, Auditor& auditor, std::size_t threads,
                          const std::atomic<bool>& stop, const Reporter& report) {
    Tally tally;
    std::optional<Progress> progress(std::in_place, "auditing", 0, ProgressUnit{"answers", 1});
    const auto produce = [&](Line& line) -> Result<bool> {
        if (stop) return source::interrupted();
        const std::uint64_t before = lines.number();
        const auto read = lines.next_word();
        line = {lines.number(), {}, true, {}};
        // A line that is no text is one wrong answer; other faults are the file's.
        if (!read && line.number == before) return read.error();
        if (!read) {
            line.sound = read.error();
            return true;
        }
        if (!*read) return false;
        line.text = **read;
        return true;
    };
    const auto work = [&](Line& line) {
        if (line.sound) check_line(auditor, line);
    };
    const auto take = [&](Line& line) -> Status {
        ++(line.is_answer ? tally.answers : tally.others);
        progress->update(tally.answers);
        if (line.sound) return {};
        ++tally.wrong;
        progress.reset();  // wipes its line
        report({fmt::format("answer on line {}", line.number), false, line.sound.error().message});
        progress.emplace("auditing", 0, ProgressUnit{"answers", 1});
        return {};
    };
    if (Status checked = source::run_ordered<Line>(threads, produce, work, take); !checked)
        return checked.error();
    return tally;
}

}  // namespace

Status check_audit(const Model& model, const AuditChecks& checks, std::size_t threads,
                   const std::atomic<bool>& stop, const Reporter& report) {
    model.index_words();
    AuditWords words(model);
    const auto lists = read_lists(model, checks, words, stop, report);
    if (!lists) {
        if (lists.error().code == ErrorCode::interrupted) return lists.error();
        report({"lists", false, lists.error().message});
        return {};
    }
    auto file = InputFile::open(checks.file, NoWriter::wait, &stop);
    if (!file) {
        report({"answers", false, file.error().message});
        return {};
    }
    TextLines replies(*file, kMaxReplyBytes);
    Auditor auditor(model, *lists, words);
    const auto tally = check_lines(replies, auditor, threads, stop, report);
    if (!tally) {
        if (tally.error().code == ErrorCode::interrupted) return tally.error();
        report({"answers", false, tally.error().message});
        return {};
    }
    if (tally->answers + tally->others == 0) {
        report({"answers", false, checks.file + ": holds no answers"});
        return {};
    }
    std::string detail = fmt::format("{} of {} are those of a plain float64 search",
                                     tally->answers - tally->wrong, tally->answers);
    if (tally->others > 0)
        detail += fmt::format("; {} other replies were not checked", tally->others);
    if (tally->answers == 0) detail += "; ask with certify=1 after FORMAT json";
    report({"answers", tally->wrong == 0 && tally->answers > 0, detail});
    return {};
}

}  // namespace gloved::verify
