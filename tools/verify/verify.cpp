#include "tools/verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/planes.hpp"
#include "common/format/ranks.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/input.hpp"
#include "tools/source/report.hpp"
#include "tools/source/source.hpp"
#include "tools/verify/planes.hpp"
#include "tools/verify/questions.hpp"
#include "tools/verify/values.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using source::ReadingRules;

/// Parsing takes up to twenty times as much memory as the text has bytes.
constexpr std::size_t kMaxReportBytes = std::size_t{64} << 20;
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

void report_opened(const Model& model, const Reporter& report) {
    const format::Header& header = model.header();
    report({"header", true,
            fmt::format("version {}, {} × {}, {} sections, generation {}", format::kVersion,
                        header.rows, header.dim, header.sections.size(),
                        format::hex(header.generation))});
    report({"sizes", true,
            fmt::format("values {} bytes, keys {} bytes", header.file_bytes, header.keys_bytes)});
    report({"pairing", true,
            fmt::format("keys have the checksum that values name, {}",
                        format::hex(header.keys_checksum))});
    report({"keys", true, fmt::format("{} distinct words in byte order", header.rows)});
    const auto& planes = model.planes_header();
    report({"planes", true,
            planes ? fmt::format("version {}, {} bits a component, {} bytes, of this model",
                                 format::kPlanesVersion, format::kPlaneBits, planes->file_bytes())
                   : "none; the cpu engine makes its own at each start"});
}

/// What report.json says, as far as it matters here; the defaults where there is none.
ReadingRules check_report(const Model& model, const Reporter& report) {
    const std::string path = model.path() + "/" + format::kReportFile;
    const auto mapped = [&]() -> Result<MappedFile> {
        auto directory = open_directory(model.path());
        if (!directory) return directory.error();
        return MappedFile::open_at(directory->get(), format::kReportFile, path);
    }();
    if (!mapped) {
        // A model serves without it, and models that were not converted from a download have none.
        report({"report", true, mapped.error().message});
        return {};
    }
    if (mapped->size_bytes() > kMaxReportBytes) {
        report({"report", false,
                fmt::format("{}: too large for a report: {} bytes, at most {}", path,
                            mapped->size_bytes(), kMaxReportBytes)});
        return {};
    }
    auto rules = source::read_rules(mapped->text());
    if (!rules) {
        report({"report", false, fmt::format("{}: {}", path, rules.error().message)});
        return {};
    }
    if (rules->generated) {
        report({"report", true, "made by gloved-bench, not of a download"});
        return {};
    }
    const std::string generation = format::hex(model.generation());
    const bool agrees = rules->generation == generation && rules->rows == model.rows();
    report({"report", agrees,
            agrees ? fmt::format("belongs to this model; duplicates: {}",
                                 source::name_of(rules->duplicates))
                   : fmt::format(
                         "{}: of another model: {} rows, generation {}; this one has {} and {}",
                         path, rules->rows, rules->generation, model.rows(), generation)});
    return *std::move(rules);
}

/// The rows by rank; empty when the ranks are not a permutation.
std::vector<format::Row> check_ranks(const Model& model, const Reporter& report) {
    format::RankFault fault;
    auto by_rank = format::rows_by_rank(model, &fault);
    if (!by_rank) {
        const std::string other = fault.same ? "which is that of " + row_name(model, *fault.same)
                                             : fmt::format("there are {} rows", model.rows());
        report({"ranks", false,
                fmt::format("{} has rank {}, {}", row_name(model, fault.row),
                            model.ranks()[fault.row], other)});
        return {};
    }
    report({"ranks", true, fmt::format("a permutation of 0 to {}", model.rows() - 1)});
    return *std::move(by_rank);
}

/// What the sources say of a model's rows. Their lines are numbered on from one to the next.
struct Comparison {
    std::vector<std::uint64_t> line_of;    ///< by row: the source line that counts, from 1; 0: none
    std::vector<bool> equal;               ///< by row: whether that line's numbers are the model's
    std::uint64_t unknown = 0;             ///< source lines whose words are not in the model
    std::string first_unknown;             ///< the word of the first
    std::uint64_t first_unknown_line = 0;  ///< from 1
    std::uint64_t lines = 0;
    // By source, of those that were read:
    std::vector<std::uint64_t> lines_of;
    std::vector<std::string> checksums;  ///< as in source::SourceRules
    std::vector<std::string> paths;
    std::vector<std::string_view> units;  ///< source::unit_of()
};

/// «line 17», or of several sources «line 17 of own.txt»: a line of Comparison, from 1.
std::string line_name(const Comparison& found, std::uint64_t line) {
    const auto [source, number] = source::find_line(found.lines_of, line - 1);
    const bool several = found.paths.size() > 1;
    return fmt::format("{} {}{}{}", found.units[source], number, several ? " of " : "",
                       several ? found.paths[source] : "");
}

/// «"glove.txt", "own.txt"»: the sources of a report.
std::string names_of(const ReadingRules& rules) {
    constexpr std::size_t kListed = 10;
    std::string names;
    for (std::size_t i = 0; i < std::min(rules.sources.size(), kListed); ++i)
        names += (i == 0 ? "" : ", ") + printable(rules.sources[i].name, 255);
    return rules.sources.size() > kListed ? names + ", …" : names;
}

/// Reads a source and compares each row with the model's.
Result<source::SourceSummary> compare_source(const Model& model, const std::string& path,
                                             const source::SourceRules& source_rules,
                                             const source::SourceOptions& source_options,
                                             source::Duplicates duplicates,
                                             const std::atomic<bool>& stop, Comparison& found) {
    auto input = source::Input::open(path, stop, source_rules.member);
    if (!input) return input.error();
    Progress progress("comparing", input->total_bytes());
    constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
    source::SourceSink sink;
    sink.begin = [&](const source::SourceSummary& summary) -> Status {
        if (summary.dim == model.dim()) return {};
        return bad_source("{}: {} numbers a word, but the model has {}", path, summary.dim,
                          model.dim());
    };
    sink.inspect = [&](source::Batch& batch) {
        batch.scratch.clear();
        for (std::size_t i = 0; i < batch.rows(); ++i) {
            const auto row = model.find(batch.key(i));
            const auto read =
                std::as_bytes(std::span(batch.values).subspan(i * model.dim(), model.dim()));
            const bool same = row && std::ranges::equal(read, std::as_bytes(model.vector(*row)));
            batch.scratch.push_back(row ? 2 * std::uint64_t{*row} + (same ? 1 : 0) : kUnknown);
        }
    };
    sink.commit = [&](source::Batch& batch) -> Status {
        for (std::size_t i = 0; i < batch.rows(); ++i) {
            const std::uint64_t line = found.lines + batch.first_line + batch.line_numbers[i] + 1;
            if (batch.scratch[i] == kUnknown) {
                if (found.unknown++ == 0) {
                    found.first_unknown = batch.key(i);
                    found.first_unknown_line = line;
                }
                continue;
            }
            const std::size_t row = batch.scratch[i] / 2;
            if (found.line_of[row] != 0 && duplicates != source::Duplicates::last) continue;
            found.line_of[row] = line;
            found.equal[row] = batch.scratch[i] % 2 == 1;
        }
        progress.update(input->source_bytes());
        return {};
    };
    auto summary = source::read_source(*input, source_options, sink);
    if (!summary) return summary;
    found.checksums.push_back(
        summary->whole ? source::checksum_text(input->checksum(), input->crc32()) : "");
    return summary;
}

/// Reads the sources one after the other, by the rules of the conversion.
Result<Comparison> compare_sources(const Model& model, const VerifyOptions& options,
                                   const ReadingRules& rules, const std::atomic<bool>& stop) {
    Comparison found;
    found.line_of.resize(model.rows());
    found.equal.resize(model.rows());
    std::uint64_t words = 0;
    for (std::size_t i = 0; i < options.sources.size(); ++i) {
        if (rules.limit != 0 && words == rules.limit) break;
        const auto source_rules = rules.sources.empty() ? source::SourceRules() : rules.sources[i];
        source::SourceOptions source_options;
        source_options.format = source_rules.format;
        source_options.dim = rules.dim_found ? 0 : model.dim();
        // Words that came from stdin are given again.
        const std::string recorded = source_rules.words == "-" ? "" : source_rules.words;
        source_options.words = options.words.empty() ? recorded : options.words;
        source_options.tensor = options.tensor.empty() ? source_rules.tensor : options.tensor;
        source_options.limit = rules.limit == 0 ? 0 : rules.limit - words;
        source_options.on_error = rules.on_error;
        source_options.threads = options.threads;
        const auto summary = compare_source(model, options.sources[i], source_rules, source_options,
                                            rules.duplicates, stop, found);
        if (!summary) return summary.error();
        words += summary->body_lines();
        found.lines += summary->lines;
        found.lines_of.push_back(summary->lines);
        found.paths.push_back(options.sources[i]);
        found.units.push_back(source::unit_of(source_rules.format));
    }
    return found;
}

void report_source_keys(const Model& model, const Comparison& found, const Reporter& report) {
    const auto missing = std::ranges::find(found.line_of, 0);
    if (found.unknown != 0) {
        report({"source keys", false,
                fmt::format("{} lines' words are not in the model; the first: {} on {}",
                            found.unknown, printable(found.first_unknown),
                            line_name(found, found.first_unknown_line))});
    } else if (missing != found.line_of.end()) {
        const auto row = static_cast<std::size_t>(missing - found.line_of.begin());
        report({"source keys", false,
                fmt::format("{} is not in {}", row_name(model, row),
                            found.paths.size() == 1 ? found.paths[0] : "any source")});
    } else {
        report({"source keys", true,
                fmt::format("all {} words, from {} lines", model.rows(), found.lines)});
    }
}

void report_source_numbers(const Model& model, const Comparison& found, const Reporter& report) {
    // In the order of the sources, so that «the first» is the first of the file.
    std::uint64_t differing = 0;
    std::size_t first = kNone;
    for (std::size_t row = 0; row < model.rows(); ++row) {
        if (found.line_of[row] == 0 || found.equal[row]) continue;
        ++differing;
        if (first == kNone || found.line_of[row] < found.line_of[first]) first = row;
    }
    report({"source numbers", differing == 0,
            differing == 0
                ? "equal bit for bit"
                : fmt::format("{} rows differ; the first: {}, {}", differing,
                              row_name(model, first), line_name(found, found.line_of[first]))});
}

/// Ranks are those of the sources if lines ascend with rank.
void report_source_ranks(const Model& model, const Comparison& found,
                         const std::vector<format::Row>& by_rank, const Reporter& report) {
    const auto place = [&](std::size_t row) {
        return found.line_of[row] == 0 ? "no line" : line_name(found, found.line_of[row]);
    };
    for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
        const std::size_t before = by_rank[rank - 1];
        const std::size_t row = by_rank[rank];
        if (found.line_of[before] < found.line_of[row]) continue;
        report({"source ranks", false,
                fmt::format("{} has rank {} and {}, {} has rank {} and {}", row_name(model, before),
                            rank - 1, place(before), row_name(model, row), rank, place(row))});
        return;
    }
    report({"source ranks", !by_rank.empty(),
            by_rank.empty() ? "the ranks are not a permutation" : "in the order of the source"});
}

/// Whether checksums show that the sources of the report were read in another order.
bool is_other_order(const Comparison& found, const ReadingRules& rules) {
    std::vector<std::string> expected;
    for (const source::SourceRules& source : rules.sources) expected.push_back(source.checksum);
    return found.checksums != expected && std::ranges::is_permutation(found.checksums, expected);
}

Status check_sources(const Model& model, const VerifyOptions& options, const ReadingRules& rules,
                     const std::vector<format::Row>& by_rank, const std::atomic<bool>& stop,
                     const Reporter& report) {
    const std::size_t expected = rules.sources.size();
    const std::string names =
        expected == 1 ? fmt::format("the model was made from one source, {}", names_of(rules))
                      : fmt::format("the model was made from {} sources, in this order: {}",
                                    expected, names_of(rules));
    if (expected != 0 && expected != options.sources.size()) {
        report({"source", false,
                fmt::format("{} given, but {}; give --source for each", options.sources.size(),
                            names)});
        return {};
    }
    const auto found = compare_sources(model, options, rules, stop);
    if (!found) {
        if (found.error().code == ErrorCode::interrupted) return found.error();
        report({"source", false,
                expected > 1 ? fmt::format("{}; {}", found.error().message, names)
                             : found.error().message});
        return {};
    }
    if (is_other_order(*found, rules)) {
        report({"source", false, fmt::format("given in another order; {}", names)});
        return {};
    }
    report_source_keys(model, *found, report);
    report_source_numbers(model, *found, report);
    report_source_ranks(model, *found, by_rank, report);
    return {};
}

}  // namespace

Result<ModelFacts> verify(const VerifyOptions& options, const std::atomic<bool>& stop,
                          const Reporter& report) {
    const auto model = Model::open(options.model_dir);
    if (!model) {
        report({"open", false, model.error().message});
        return ModelFacts();
    }
    ModelFacts facts{model->rows(), model->dim(), model->generation(), {}, {}};
    report_opened(*model, report);
    if (options.quick) {
        (void)report_neighbors_header(*model, report);
        return facts;
    }

    bool sound = true;
    const auto report_and_note = [&](const Check& check) {
        sound = sound && check.ok;
        report(check);
    };
    const ReadingRules rules = check_report(*model, report);
    auto ranges = check_values(*model, options.threads, stop, report_and_note);
    if (!ranges) return ranges.error();
    facts.minimum.assign(ranges->minimum().begin(), ranges->minimum().end());
    facts.maximum.assign(ranges->maximum().begin(), ranges->maximum().end());
    const auto by_rank = check_ranks(*model, report_and_note);
    if (Status checked = check_planes(*model, options.threads, stop, report_and_note); !checked)
        return checked.error();
    if (sound) {
        Status checked = check_neighbors(*model, options.neighbors, options.threads, stop, report);
        if (!checked) return checked.error();
    } else if (report_neighbors_header(*model, report)) {
        report({"lists of neighbors", false, "not compared: they follow from the values"});
    }
    if (options.engines && !sound) {
        report({"engines", false, "not asked: they take the values for sound"});
    } else if (options.engines) {
        EngineChecks checks = options.asked;
        checks.threads = options.threads;
        checks.lists = draw_lists(*model, checks.seed);
        const auto ways = choose_ways(all_ways(*model, options.threads, options.devices), checks);
        if (!ways) {
            report({"engines", false, ways.error().message});
        } else if (Status checked = check_engines(*model, *ways, checks, stop, report); !checked) {
            return checked.error();
        }
    }
    if (!options.audit.file.empty() && !sound) {
        report({"answers", false, "not checked: they follow from the values"});
    } else if (!options.audit.file.empty()) {
        const auto report_of_answers = [&](Check check) {
            check.of_answers = true;
            report(check);
        };
        Status checked =
            check_audit(*model, options.audit, options.threads, stop, report_of_answers);
        if (!checked) return checked.error();
    }
    if (!options.sources.empty()) {
        Status checked = check_sources(*model, options, rules, by_rank, stop, report);
        if (!checked) return checked.error();
    }
    return facts;
}

}  // namespace gloved::verify
