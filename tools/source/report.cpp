#include "tools/source/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/format/layout.hpp"
#include "common/version.hpp"
#include "common/wire/json_string.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/line.hpp"
#include "tools/source/oddity.hpp"

namespace gloved::source {
namespace {

constexpr std::string_view kDuplicatesNames[] = {"first", "last", "error"};
constexpr std::string_view kOnErrorNames[] = {"stop", "skip"};

template <class Enum, std::size_t n>
std::optional<Enum> from_name(const std::string_view (&names)[n], std::string_view name) {
    const auto found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names)) return std::nullopt;
    return static_cast<Enum>(found - std::begin(names));
}

/// Any bytes as a JSON string that bytes_of_json_string decodes.
nlohmann::ordered_json exact_string(std::string_view bytes) {
    std::string text;
    wire::append_json_string(text, bytes);
    return nlohmann::ordered_json::parse(text);
}

/// Each oddity that occurred: how many rows have it, and the first.
nlohmann::ordered_json odd_words(const SourceSummary& source) {
    auto odd = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < kOddities; ++i) {
        const OddWord& word = source.odd_words.of(static_cast<Oddity>(i));
        if (word.count == 0) continue;
        odd[std::string(kOddityNames[i])] = {
            {"count", word.count}, {"line", word.line + 1}, {"key", exact_string(word.key)}};
    }
    return odd;
}

}  // namespace

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
    using Json = nlohmann::ordered_json;
    Json duplicates = Json::array();
    for (const Duplicate& duplicate : report.duplicate_examples) {
        duplicates.push_back({{"key", exact_string(duplicate.key)},
                              {"kept_line", duplicate.kept_line},
                              {"dropped_line", duplicate.dropped_line}});
    }
    Json reasons = Json::object();
    for (std::size_t i = 0; i < kLineFaults; ++i) {
        if (report.source.skipped[i] != 0)
            reasons[std::string(kLineFaultNames[i])] = report.source.skipped[i];
    }
    Json seconds = Json::object();
    for (const auto& [stage, value] : report.seconds) seconds[stage] = value;
    const Json json = {
        {"tool", "gloved-convert"},
        {"version", kProgramVersion},
        {"source",
         {{"name", exact_string(report.source_name)},
          {"bytes", report.source_bytes},
          {"xxh3",
           report.source_checksum ? Json(format::hex(*report.source_checksum)) : Json(nullptr)},
          {"member", report.member.empty() ? Json(nullptr) : exact_string(report.member)},
          {"crc32",
           report.source_crc32 ? Json(fmt::format("{:08x}", *report.source_crc32)) : Json(nullptr)},
          {"compression", report.compression},
          {"bom", report.source.bom},
          {"header_rows",
           report.source.header_rows ? Json(*report.source.header_rows) : Json(nullptr)},
          {"whole", report.source.whole},
          {"final_newline", report.source.final_newline}}},
        {"format", name_of(report.source.format)},
        {"dim", report.source.dim},
        {"dim_found", report.source.dim_found},
        {"limit", report.limit},
        {"lines_read", report.source.lines},
        {"rows_kept", report.rows_kept},
        {"duplicates",
         {{"rule", name_of(report.duplicates_rule)},
          {"count", report.duplicates},
          {"lines", duplicates}}},
        {"skipped",
         {{"rule", name_of(report.on_error)},
          {"count", report.source.skipped_lines()},
          {"reasons", reasons},
          {"first", report.source.skipped_examples}}},
        {"implausible", odd_words(report.source)},
        {"generation", format::hex(report.generation)},
        {"planes", report.planes},
        {"seconds", seconds},
    };
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
        const auto format =
            source_format_from(json.value("format", std::string(name_of(SourceFormat::glove))));
        if (!duplicates || !on_error || !format)
            return Error{ErrorCode::damaged, "it names a rule that this version does not know"};
        rules.duplicates = *duplicates;
        rules.on_error = *on_error;
        rules.format = *format;
        rules.dim_found = json.value("dim_found", false);
        const auto source = json.find("source");
        if (source != json.end() && source->contains("member") && !source->at("member").is_null())
            rules.member = wire::bytes_of_json_string(source->at("member").get<std::string>());
        rules.limit = json.at("limit").get<std::uint64_t>();
        rules.rows = json.at("rows_kept").get<std::uint64_t>();
        rules.generation = json.at("generation").get<std::string>();
        return rules;
    } catch (const nlohmann::json::exception&) {
        return Error{ErrorCode::damaged, "it is not a report of gloved-convert"};
    }
}

}  // namespace gloved::source
