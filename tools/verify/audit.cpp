#include "tools/verify/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/case_fold.hpp"
#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/format/list_file.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "common/wire/json_string.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"
#include "tools/source/ordered_pipeline.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using format::Row;
using kernels::Hit;
using nlohmann::json;
using wire::Verb;

using ListFiles = std::map<std::string, format::ListFile>;

/// The fault of an answer.
Error wrong(std::string message) { return {ErrorCode::mismatch, std::move(message)}; }

/// Words by the rule of PROTOCOL.md («Words that the model does not have»), found by plain
/// searches.
class Words {
  public:
    explicit Words(const Model& model) : model_(model) {}

    std::optional<Row> find(const std::string& word, bool ignores_case) {
        if (const auto row = model_.find(word)) return row;
        if (!ignores_case) return std::nullopt;
        for (const std::string& form : {lower_case(word), capitalized(word), upper_case(word)}) {
            if (const auto row = model_.find(form)) return row;
        }
        std::call_once(folded_, [&] { fold_all(); });
        const auto found = by_folding_.find(fold_case(word));
        return found == by_folding_.end() ? std::nullopt : std::optional(found->second);
    }

  private:
    void fold_all() {
        const auto ranks = model_.ranks();
        for (std::size_t i = 0; i < model_.rows(); ++i) {
            const auto row = static_cast<Row>(i);
            const auto [at, is_new] = by_folding_.emplace(fold_case(model_.key(row)), row);
            if (!is_new && ranks[row] < ranks[at->second]) at->second = row;
        }
    }

    const Model& model_;
    std::once_flag folded_;
    std::unordered_map<std::string, Row> by_folding_;  // the most frequent word of each folding
};

/// A request with its words looked up.
struct Question {
    wire::Request request;
    std::vector<Row> rows;  ///< of its words, without those that are left out
    Weights weights;        ///< of `rows`, for NEAR
    std::set<std::string> skipped;
    std::map<std::string, std::string> replaced;
};

/// Looks up the words of a request. Error: mismatch, if the daemon would have refused it.
class QuestionReader {
  public:
    QuestionReader(const Model& model, Words& words, const std::string& line)
        : model_(model), words_(words), line_(line) {}

    Result<Question> read() {
        auto request = wire::parse_request(line_);
        if (!request) return wrong("the request is refused: " + request.error().message);
        question_.request = *std::move(request);
        const wire::Options& options = question_.request.options;
        ignores_case_ = options.word_case == wire::WordCase::ignore;
        skips_ = options.unknown == wire::Unknown::skip;
        for (const expr::Term& term : question_.request.terms) {
            if (Status taken = take(term.word, term.coefficient); !taken) return taken.error();
        }
        for (const std::string& word : question_.request.words) {
            if (Status taken = take(word, 1); !taken) return taken.error();
        }
        if (question_.rows.empty() && question_.request.verb != Verb::nearvec)
            return wrong("no word of the request is in the model");
        return std::move(question_);
    }

  private:
    Status take(const std::string& word, double coefficient) {
        const auto row = words_.find(word, ignores_case_);
        if (!row) {
            if (!skips_) return wrong(printable(word) + " is not in the model");
            question_.skipped.insert(word);
            return {};
        }
        if (model_.key(*row) != word) question_.replaced.emplace(word, model_.key(*row));
        question_.rows.push_back(*row);
        question_.weights.emplace_back(coefficient, *row);
        return {};
    }

    const Model& model_;
    Words& words_;
    const std::string& line_;
    Question question_;
    bool ignores_case_ = false;
    bool skips_ = false;
};

std::string bytes_of(const json& word) {
    return wire::bytes_of_json_string(word.get<std::string>());
}

bool has_same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Answers questions and compares. Any number of threads may use it.
class Auditor {
  public:
    Auditor(const Model& model, const ListFiles& lists)
        : model_(model), lists_(lists), words_(model), norms_(oracle_norms(model)) {}

    /// Whether a reply is one of those that are checked.
    static bool is_answer(const json& reply) {
        if (!reply.at("ok").get<bool>()) return false;
        const auto verb = wire::find_verb(reply.at("verb").get<std::string>());
        return verb == Verb::near || verb == Verb::nearvec || verb == Verb::analogy;
    }

    /// Error: mismatch, which says what is wrong.
    Status check(const json& reply) {
        if (!reply.contains("request"))
            return wrong("it carries no request, so nobody can check it; ask with certify=1");
        if (Status same = check_model(reply); !same) return same;
        const auto line = bytes_of(reply["request"]);
        auto question = QuestionReader(model_, words_, line).read();
        if (!question) return question.error();
        if (wire::verb_name(question->request.verb) != reply["verb"].get<std::string>())
            return wrong("its request is of another verb");
        if (Status same = check_lists(reply, question->request.options); !same) return same;
        if (Status same = check_notes(reply, *question); !same) return same;
        const auto hits = answer(*question);
        if (!hits) return hits.error();
        if (Status same = check_hits(reply, *question, *hits); !same) return same;
        return check_certificate(reply, question->request.options, *hits);
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

    /// Compares the checksums of the lists that `options` name.
    Status check_lists(const json& reply, const wire::Options& options) const {
        std::map<std::string, std::string> told;
        for (const json& list : reply.at("lists"))
            told[bytes_of(list.at("list"))] = list.at("checksum").get<std::string>();
        for (const auto* names : {&options.within, &options.without}) {
            for (const std::string& name : *names) {
                const auto checksum = told.find(name);
                if (checksum == told.end())
                    return wrong(fmt::format("no checksum of the list {}", printable(name)));
                const auto list = lists_.find(name);
                if (list == lists_.end()) {
                    return wrong(
                        fmt::format("the list {0} is missing: give it with --list {0}=FILE", name));
                }
                const std::string own = format::hex(list->second.checksum);
                if (checksum->second != own) {
                    return wrong(fmt::format("another list {}: of checksum {}, the file has {}",
                                             name, printable(checksum->second), own));
                }
            }
        }
        return {};
    }

    /// What the reply tells of words that were left out or replaced.
    static Status check_notes(const json& reply, const Question& question) {
        std::set<std::string> skipped;
        for (const json& word : reply.value("skipped", json::array()))
            skipped.insert(bytes_of(word));
        std::map<std::string, std::string> replaced;
        for (const json& pair : reply.value("replaced", json::array()))
            replaced.emplace(bytes_of(pair.at("word")), bytes_of(pair.at("by")));
        const bool is_sound = std::ranges::includes(question.skipped, skipped) &&
                              std::ranges::includes(question.replaced, replaced);
        const bool is_complete = skipped.size() == question.skipped.size() &&
                                 replaced.size() == question.replaced.size();
        if (is_sound && (is_complete || reply.contains("unlisted"))) return {};
        return wrong("other words of the request were left out or replaced");
    }

    bool is_eligible(const Question& question, Row row, double score) const {
        const wire::Options& options = question.request.options;
        if (options.top && model_.ranks()[row] >= *options.top) return false;
        if (options.min && !(score >= *options.min)) return false;
        if (!model_.key(row).starts_with(options.prefix)) return false;
        const auto has = [&](const std::string& name) {
            return std::ranges::binary_search(lists_.at(name).rows, row);
        };
        if (!std::ranges::all_of(options.within, has)) return false;
        if (std::ranges::any_of(options.without, has)) return false;
        return !options.exclude_inputs ||
               std::ranges::find(question.rows, row) == question.rows.end();
    }

    /// The hits. Error: mismatch, if there is no direction to search in.
    Result<std::vector<Hit>> answer(const Question& question) const {
        const wire::Request& request = question.request;
        const auto eligible = [&](Row row, double score) {
            return is_eligible(question, row, score);
        };
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
            return oracle_top(oracle_cosmul(model_, {vectors[1], vectors[2]}, {vectors[0]}),
                              request.options.k, eligible);
        }
        const std::vector<float> vector = query_vector(question);
        if (vector.size() != model_.dim())
            return wrong(fmt::format("{} numbers; the model's vectors have {}", vector.size(),
                                     model_.dim()));
        if (is_zero(vector)) return wrong("the query vector is zero");
        return oracle_top(oracle_scores(model_, norms_, vector), request.options.k, eligible);
    }

    std::vector<float> query_vector(const Question& question) const {
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

    Status check_hits(const json& reply, const Question& question,
                      const std::vector<Hit>& hits) const {
        const json& results = reply.at("results");
        for (std::size_t i = 0; i < std::min(hits.size(), results.size()); ++i) {
            if (Status same = check_hit(results[i], question, hits[i]); !same)
                return wrong(fmt::format("place {} {}", i + 1, same.error().message));
        }
        if (results.size() == hits.size()) return {};
        return wrong(fmt::format("{} words for {}", results.size(), hits.size()));
    }

    Status check_hit(const json& result, const Question& question, const Hit& hit) const {
        const std::string word = bytes_of(result.at("word"));
        const auto score = result.at("score").get<double>();
        const std::string_view key = model_.key(hit.row);
        // JSON has 0 for −0.
        const double right = hit.score + 0.0;
        if (word != key || !has_same_bits(score, right)) {
            return wrong(fmt::format("is {} with {} for {} with {}", printable(word), score,
                                     printable(key), right));
        }
        const auto is_told = [&](wire::Field field, std::string_view name, const json& value) {
            const auto& fields = question.request.options.fields;
            return std::ranges::find(fields, field) == fields.end() || result.at(name) == value;
        };
        if (is_told(wire::Field::row, "row", hit.row) &&
            is_told(wire::Field::rank, "rank", model_.ranks()[hit.row]) &&
            is_told(wire::Field::norm, "norm", model_.norms()[hit.row]))
            return {};
        return wrong(
            fmt::format("has another row, rank or norm than {}", row_name(model_, hit.row)));
    }

    /// The k-th score, and whether the figures beside it can be true.
    static Status check_certificate(const json& reply, const wire::Options& options,
                                    const std::vector<Hit>& hits) {
        if (hits.empty() == reply.contains("kth"))
            return wrong("a k-th score without words, or none");
        if (hits.empty()) return {};
        const double kth = hits.back().score + 0.0;
        if (!has_same_bits(reply["kth"].get<double>(), kth))
            return wrong(fmt::format("the k-th score is {}, not {}", kth, reply["kth"].dump()));
        if (reply.at("pass") == "neighbors") return {};
        const json& rejected_below = reply.at("rejected_below");
        if (hits.size() == options.k && !rejected_below.is_null() &&
            rejected_below.get<double>() > kth)
            return wrong("rows that were not scored may be among the words");
        const auto count = [&](const char* key) { return reply.at(key).get<std::uint64_t>(); };
        const auto ruled_out = [](std::uint64_t of, std::uint64_t left) {
            return of > left ? of - left : 0;
        };
        if (count("ruled_out_by_codes") != ruled_out(count("scanned"), count("survivors")) ||
            count("ruled_out_by_vectors") != ruled_out(count("survivors"), count("rescored")))
            return wrong("the numbers of rows that were ruled out do not add up");
        return {};
    }

    const Model& model_;
    const ListFiles& lists_;
    Words words_;
    const std::vector<double> norms_;
};

/// Parses an object. Error: mismatch, also for a name that occurs twice in an object, of which
/// readers take one or the other.
Result<json> parse_object(const std::string& line) {
    std::vector<std::set<std::string>> names;
    bool has_twice = false;
    const auto note = [&](int, json::parse_event_t event, json& parsed) {
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
    if (!parsed.is_object()) return wrong("it is no reply in JSON; ask after FORMAT json");
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
    const auto reply = parse_object(line.text);
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

Result<ListFiles> read_lists(const Model& model, const AuditChecks& checks,
                             const Reporter& report) {
    ListFiles lists;
    for (const AuditChecks::List& list : checks.lists) {
        auto read = format::read_list_file(list.path, model);
        if (!read) return read.error();
        report({"list " + list.name, true,
                fmt::format("{} words, {} not in the model, checksum {}", read->rows.size(),
                            read->missing, format::hex(read->checksum))});
        lists.emplace(list.name, *std::move(read));
    }
    return lists;
}

/// What was found in all.
struct Tally {
    std::uint64_t answers = 0;
    std::uint64_t wrong = 0;
    std::uint64_t others = 0;
};

Result<Tally> check_lines(std::istream& in, const AuditChecks& checks, Auditor& auditor,
                          std::size_t threads, const std::atomic<bool>& stop,
                          const Reporter& report) {
    Tally tally;
    std::optional<Progress> progress(std::in_place, "auditing", 0, ProgressUnit{"answers", 1});
    std::uint64_t read = 0;
    const auto produce = [&](Line& line) -> Result<bool> {
        do {
            if (stop) return source::interrupted();
            if (!std::getline(in, line.text)) {
                if (in.bad()) return Error{ErrorCode::io, checks.file + ": cannot be read"};
                return false;
            }
            line.number = ++read;
        } while (line.text.empty() || line.text == "\r");
        return true;
    };
    const auto work = [&](Line& line) { check_line(auditor, line); };
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
    const auto lists = read_lists(model, checks, report);
    if (!lists) {
        report({"lists", false, lists.error().message});
        return {};
    }
    std::ifstream file;
    if (checks.file != "-") {
        file.open(checks.file, std::ios::binary);
        // An ifstream opens a directory, too, and finds it empty.
        if (!file || file.peek() == std::ifstream::traits_type::eof()) {
            report({"answers", false, checks.file + ": no file of answers, or an empty one"});
            return {};
        }
    }
    Auditor auditor(model, *lists);
    const auto tally =
        check_lines(checks.file == "-" ? std::cin : file, checks, auditor, threads, stop, report);
    if (!tally) {
        if (tally.error().code == ErrorCode::interrupted) return tally.error();
        report({"answers", false, tally.error().message});
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
