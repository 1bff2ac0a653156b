#include "tools/source/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/format/layout.hpp"
#include "common/program_version.hpp"
#include "common/quoting.hpp"
#include "common/wire/json_string.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/line.hpp"
#include "tools/source/oddity.hpp"

namespace gloved::source {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDuplicatesNames[] = {"first", "last", "error"};
constexpr std::string_view kOnErrorNames[] = {"stop", "skip"};

template <class Enum, std::size_t n>
std::optional<Enum> from_name(const std::string_view (&names)[n], std::string_view name) {
    const auto found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names)) return std::nullopt;
    return static_cast<Enum>(found - std::begin(names));
}

/// Any bytes as a JSON string that bytes_of_json_string decodes.
Json exact_string(std::string_view bytes) {
    std::string text;
    wire::append_json_string(text, bytes);
    return Json::parse(text);
}

/// Each oddity that occurred: how many rows have it, and the first. With several sources, also in
/// which that is.
Json odd_words(std::span<const SourceReport> sources) {
    Json odd = Json::object();
    for (std::size_t i = 0; i < kOddities; ++i) {
        Json found;
        std::uint64_t count = 0;
        for (const SourceReport& source : sources) {
            const OddWord& word = source.summary.odd_words.of(static_cast<Oddity>(i));
            if (count == 0 && word.count != 0) {
                found = {{"count", 0}, {"line", word.line + 1}, {"key", exact_string(word.key)}};
                if (sources.size() > 1) found["source"] = &source - sources.data();
            }
            count += word.count;
        }
        if (count == 0) continue;
        found["count"] = count;
        odd[std::string(kOddityNames[i])] = found;
    }
    return odd;
}

/// How many lines were skipped, why, and the first of them. With several sources, messages name
/// theirs.
Json skipped_lines(std::span<const SourceReport> sources, OnError rule) {
    std::uint64_t count = 0;
    std::array<std::uint64_t, kLineFaults> faults{};
    std::vector<std::string> first;
    for (const SourceReport& source : sources) {
        count += source.summary.skipped_lines();
        for (std::size_t i = 0; i < kLineFaults; ++i) faults[i] += source.summary.skipped[i];
        for (const std::string& example : source.summary.skipped_examples) {
            if (first.size() == kShownProblems) break;
            first.push_back(sources.size() > 1 ? source.name + ": " + example : example);
        }
    }
    Json reasons = Json::object();
    for (std::size_t i = 0; i < kLineFaults; ++i) {
        if (faults[i] != 0) reasons[std::string(kLineFaultNames[i])] = faults[i];
    }
    return {{"rule", name_of(rule)}, {"count", count}, {"reasons", reasons}, {"first", first}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json name_or_null(const std::string& name) {
    return name.empty() ? Json(nullptr) : Json(exact_string(name));
}

/// The object `source`.
Json describe(const SourceReport& source) {
    const SourceSummary& summary = source.summary;
    return {{"name", exact_string(source.name)},
            {"bytes", source.bytes},
            {"xxh3", text_or_null(checksum_text(source.checksum, std::nullopt))},
            {"member", name_or_null(source.member)},
            {"words", name_or_null(summary.words)},
            {"tensor", name_or_null(summary.layout.tensor)},
            {"dtype", name_or_null(summary.layout.dtype)},
            {"crc32", text_or_null(checksum_text(std::nullopt, source.crc32))},
            {"compression", source.compression},
            {"bom", summary.bom},
            {"header_rows", summary.header_rows ? Json(*summary.header_rows) : Json(nullptr)},
            {"whole", summary.whole},
            {"final_newline", summary.final_newline}};
}

/// The array `sources`: of each what a report of one source says.
Json describe_all(const Report& report) {
    Json sources = Json::array();
    for (const SourceReport& source : report.sources) {
        Json described = describe(source);
        described["format"] = name_of(source.summary.format);
        described["lines_read"] = source.summary.lines;
        described["rows_kept"] = source.rows_kept;
        described["skipped"] = skipped_lines({&source, 1}, report.on_error);
        described["implausible"] = odd_words({&source, 1});
        sources.push_back(std::move(described));
    }
    return sources;
}

/// The listed duplicates. With several sources, also the two of each.
Json list_duplicates(const Report& report) {
    Json list = Json::array();
    for (const Duplicate& duplicate : report.duplicate_examples) {
        list.push_back({{"key", exact_string(duplicate.key)},
                        {"kept_line", duplicate.kept.line},
                        {"dropped_line", duplicate.dropped.line}});
        if (report.sources.size() == 1) continue;
        list.back()["kept_source"] = duplicate.kept.source;
        list.back()["dropped_source"] = duplicate.dropped.source;
    }
    return list;
}

Error unknown_rule() {
    return {ErrorCode::damaged, "it names a rule that this version does not know"};
}

/// The rules of a source from its object. Fields may be missing.
SourceRules rules_of_source(const nlohmann::json& source, SourceFormat format) {
    SourceRules rules;
    rules.format = format;
    const auto text = [&](const char* field) {
        const auto found = source.find(field);
        return found == source.end() || found->is_null() ? std::string()
                                                         : found->get<std::string>();
    };
    rules.name = wire::bytes_of_json_string(text("name"));
    rules.member = wire::bytes_of_json_string(text("member"));
    rules.words = wire::bytes_of_json_string(text("words"));
    rules.tensor = wire::bytes_of_json_string(text("tensor"));
    rules.checksum = text("xxh3") + text("crc32");
    return rules;
}

/// The rules of each source of a report: of several if it lists them.
Result<std::vector<SourceRules>> rules_of_sources(const nlohmann::json& report) {
    std::vector<SourceRules> rules;
    const auto listed = report.find("sources");
    if (listed == report.end()) {
        const auto format = source_format_from(report.value("format", "glove"));
        if (!format) return unknown_rule();
        rules.push_back(rules_of_source(report.value("source", nlohmann::json::object()), *format));
        return rules;
    }
    for (const nlohmann::json& source : listed->get<std::vector<nlohmann::json>>()) {
        const auto format = source_format_from(source.at("format").get<std::string>());
        if (!format) return unknown_rule();
        rules.push_back(rules_of_source(source, *format));
    }
    return rules;
}

}  // namespace

SourceLine find_line(std::span<const std::uint64_t> lines, std::uint64_t number) {
    std::size_t source = 0;
    for (; number >= lines[source]; ++source) {
        assert(source + 1 < lines.size());
        number -= lines[source];
    }
    return {source, number + 1};
}

std::string checksum_text(std::optional<std::uint64_t> checksum,
                          std::optional<std::uint32_t> crc32) {
    if (checksum) return format::hex(*checksum);
    return crc32 ? fmt::format("{:08x}", *crc32) : std::string();
}

Report::Totals Report::totals() const {
    Totals totals;
    for (const SourceReport& source : sources) {
        totals.lines += source.summary.lines;
        totals.words += source.summary.body_lines();
        totals.skipped_lines += source.summary.skipped_lines();
        totals.bytes += source.bytes;
        totals.text_bytes += source.summary.text_bytes;
        totals.most_rows = std::max(totals.most_rows, source.summary.rows);
    }
    return totals;
}

std::string Report::text_of(const Duplicate& duplicate) const {
    const auto& [kept, dropped, key] = duplicate;
    const SourceReport& source = sources[dropped.source];
    const SourceReport& other = sources[kept.source];
    return fmt::format("{}: {} {}: the word {} stands on {} {}{}{}", source.name,
                       unit_of(source.summary.format), dropped.line, printable(key),
                       unit_of(other.summary.format), kept.line,
                       kept.source == dropped.source ? "" : " of ",
                       kept.source == dropped.source ? "" : other.name);
}

std::string_view name_of(Duplicates rule) {
    return kDuplicatesNames[static_cast<std::size_t>(rule)];
}
std::string_view name_of(OnError rule) { return kOnErrorNames[static_cast<std::size_t>(rule)]; }
std::optional<Duplicates> duplicates_from(std::string_view name) {
    return from_name<Duplicates>(kDuplicatesNames, name);
}
std::optional<OnError> on_error_from(std::string_view name) {
    return from_name<OnError>(kOnErrorNames, name);
}

std::string to_json(const Report& report) {
    const SourceReport& first = report.sources.front();
    Json seconds = Json::object();
    for (const auto& [stage, value] : report.seconds) seconds[stage] = value;
    Json json = {{"tool", "gloved-convert"}, {"version", kProgramVersion}};
    json["source"] = describe(first);
    if (report.sources.size() > 1) json["sources"] = describe_all(report);
    json["format"] = name_of(first.summary.format);
    json["dim"] = first.summary.dim;
    json["dim_found"] = first.summary.dim_found;
    json["limit"] = report.limit;
    json["lines_read"] = report.totals().lines;
    json["rows_kept"] = report.rows_kept;
    json["duplicates"] = {{"rule", name_of(report.duplicates_rule)},
                          {"count", report.duplicates},
                          {"lines", list_duplicates(report)}};
    json["skipped"] = skipped_lines(report.sources, report.on_error);
    json["implausible"] = odd_words(report.sources);
    json["generation"] = format::hex(report.generation);
    json["planes"] = report.planes;
    json["seconds"] = seconds;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ReadingRules> read_rules(std::string_view text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    try {
        ReadingRules rules;
        if (json.is_object() && json.value("format", nlohmann::json()) == "generated") {
            rules.generated = true;
            return rules;
        }
        const auto duplicates =
            duplicates_from(json.at("duplicates").at("rule").get<std::string>());
        const auto on_error = on_error_from(json.at("skipped").at("rule").get<std::string>());
        if (!duplicates || !on_error) return unknown_rule();
        rules.duplicates = *duplicates;
        rules.on_error = *on_error;
        rules.dim_found = json.value("dim_found", false);
        auto sources = rules_of_sources(json);
        if (!sources) return sources.error();
        rules.sources = *std::move(sources);
        rules.limit = json.at("limit").get<std::uint64_t>();
        rules.rows = json.at("rows_kept").get<std::uint64_t>();
        rules.generation = json.at("generation").get<std::string>();
        return rules;
    } catch (const nlohmann::json::exception&) {
        return Error{ErrorCode::damaged, "it is not a report of gloved-convert"};
    }
}

}  // namespace gloved::source
