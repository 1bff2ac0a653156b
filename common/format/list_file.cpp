#include "common/format/list_file.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "common/text_lines.hpp"

namespace gloved::format {
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

std::uint64_t checksum_of(std::span<const Row> rows, const Model& model) {
    Checksum checksum;
    for (const Row row : rows) {
        checksum.update(std::as_bytes(std::span(model.key(row))));
        checksum.update(std::as_bytes(std::span("\n", 1)));
    }
    return checksum.value();
}

}  // namespace

Result<ListFile> read_list_file(const std::string& path, const Model& model) {
    const auto text = read_text(path, kMaxFileBytes);
    if (!text) return text.error();
    ListFile list;
    std::vector<std::string_view> missing;
    for (const std::string_view word : lines_of(*text)) {
        if (const auto row = model.find(word)) {
            list.rows.push_back(*row);
        } else {
            missing.push_back(word);
        }
    }
    sort_and_drop_repetitions(list.rows);
    sort_and_drop_repetitions(missing);
    list.missing = missing.size();
    list.checksum = checksum_of(list.rows, model);
    return list;
}

}  // namespace gloved::format
