#include "tools/source/stanford.hpp"

#include <algorithm>
#include <array>

namespace gloved::source {
namespace {

// https://nlp.stanford.edu/projects/glove/. Some copies of glove.6B carry one line more, «<unk>».
constexpr std::array kKnownFiles = {
    KnownFile{"glove.6B.50d", 50, 400'000},
    KnownFile{"glove.6B.50d with <unk>", 50, 400'001},
    KnownFile{"glove.6B.100d", 100, 400'000},
    KnownFile{"glove.6B.100d with <unk>", 100, 400'001},
    KnownFile{"glove.6B.200d", 200, 400'000},
    KnownFile{"glove.6B.200d with <unk>", 200, 400'001},
    KnownFile{"glove.6B.300d", 300, 400'000},
    KnownFile{"glove.6B.300d with <unk>", 300, 400'001},
    KnownFile{"glove.42B.300d", 300, 1'917'494},
    KnownFile{"glove.840B.300d", 300, 2'196'017},
    KnownFile{"glove.twitter.27B.25d", 25, 1'193'514},
    KnownFile{"glove.twitter.27B.50d", 50, 1'193'514},
    KnownFile{"glove.twitter.27B.100d", 100, 1'193'514},
    KnownFile{"glove.twitter.27B.200d", 200, 1'193'514},
    KnownFile{"glove.2024.wikigiga.50d", 50, 1'291'147},
};

/// The files of 2024. Of most, no number of lines is known.
constexpr std::string_view kOf2024 = "2024";

bool contains_ignoring_case(std::string_view name, std::string_view lower_word) {
    const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
    return std::search(name.begin(), name.end(), lower_word.begin(), lower_word.end(), same) !=
           name.end();
}

}  // namespace

std::optional<KnownFile> known_file(std::uint64_t lines, std::size_t dim) {
    const auto found = std::ranges::find_if(
        kKnownFiles, [&](const KnownFile& file) { return file.lines == lines && file.dim == dim; });
    if (found == kKnownFiles.end()) return std::nullopt;
    return *found;
}

std::optional<KnownFile> maybe_truncated(std::string_view name, std::uint64_t lines,
                                         std::size_t dim) {
    const std::string_view base = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
    const auto has = [&](std::string_view word) { return contains_ignoring_case(base, word); };
    const bool of_2024 = has(kOf2024);
    const bool is_glove = has("glove") || (of_2024 && has("wiki_giga"));
    if (!is_glove || has("sample") || known_file(lines, dim)) return std::nullopt;
    std::optional<KnownFile> nearest;
    for (const KnownFile& file : kKnownFiles) {
        if ((file.name.find(kOf2024) != std::string_view::npos) != of_2024) continue;
        if (file.dim == dim && file.lines > lines && (!nearest || file.lines < nearest->lines))
            nearest = file;
    }
    return nearest;
}

std::uint64_t fewest_bytes(std::string_view name) {
    for (const KnownFile& file : kKnownFiles) {
        if (name == std::string(file.name) + ".txt") return file.lines * (2 * file.dim + 2);
    }
    return 1;
}

}  // namespace gloved::source
