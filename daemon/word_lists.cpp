#include "daemon/word_lists.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/quoting.hpp"
#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

/// Longer files are no lists of words: all of glove.840B.300d's take 21 MB.
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

template <class T>
void sort_and_drop_repetitions(std::vector<T>& items) {
    std::ranges::sort(items);
    items.erase(std::unique(items.begin(), items.end()), items.end());
}

/// The lines of a file, without their LF or CR LF; no empty ones.
std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty()) lines.push_back(line);
    }
    return lines;
}

std::uint64_t checksum_of(std::span<const format::Row> rows, const format::Model& model) {
    format::Checksum checksum;
    for (const format::Row row : rows) {
        checksum.update(std::as_bytes(std::span(model.key(row))));
        checksum.update(std::as_bytes(std::span("\n", 1)));
    }
    return checksum.value();
}

}  // namespace

Result<WordLists> WordLists::read(std::span<const ListSetting> settings,
                                  const format::Model& model) {
    WordLists lists;
    if (settings.empty()) return lists;
    model.index_words();
    auto all = std::make_shared<kernels::RowLists>(model.rows());
    for (const ListSetting& setting : settings) {
        const auto text = read_whole_file(setting.path, kMaxFileBytes);
        if (!text) {
            return error_with(text.error().code, "list {}: {}", setting.name, text.error().message);
        }
        std::vector<format::Row> rows;
        std::vector<std::string_view> missing;
        for (const std::string_view word : lines_of(*text)) {
            if (const auto row = model.find(word)) {
                rows.push_back(*row);
            } else {
                missing.push_back(word);
            }
        }
        sort_and_drop_repetitions(rows);
        sort_and_drop_repetitions(missing);
        lists.facts_.push_back(
            {setting.name, rows.size(), missing.size(), checksum_of(rows, model)});
        const auto level = rows.empty() ? spdlog::level::warn : spdlog::level::info;
        write_log_always(level,
                         fmt::format("list {}, {}: {} words, {} not in the model", setting.name,
                                     setting.path, rows.size(), missing.size()));
        all->add(std::move(rows));
    }
    lists.rows_ = std::move(all);
    return lists;
}

Result<kernels::ListMask> WordLists::find(std::span<const std::string> names) const {
    kernels::ListMask found = 0;
    for (const std::string& name : names) {
        const auto at = std::ranges::find(facts_, name, &ListFacts::name);
        if (at == facts_.end()) {
            std::string there;
            for (const ListFacts& facts : facts_) there += (there.empty() ? "" : ", ") + facts.name;
            return error_with(ErrorCode::unknown_list, "no list {} of this model: there is {}",
                              printable(name), there.empty() ? "none" : there);
        }
        found |= kernels::ListMask{1} << (at - facts_.begin());
    }
    return found;
}

}  // namespace gloved::daemon
