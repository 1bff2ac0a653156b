#include "tools/convert/key_sort.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <tuple>

namespace gloved::convert {
namespace {

constexpr std::size_t kPiece = sizeof(std::uint64_t);

struct Entry {
    std::uint64_t piece;
    std::uint32_t at;
};

/// Eight bytes from `depth` on as an integer that compares like memcmp. Padded with zeros: no key
/// holds a NUL, so a key comes before all longer keys that it begins.
std::uint64_t piece_of(std::string_view key, std::size_t depth) {
    std::uint64_t piece = 0;
    if (depth < key.size())
        std::memcpy(&piece, key.data() + depth, std::min(key.size() - depth, kPiece));
    return __builtin_bswap64(piece);
}

}  // namespace

std::vector<std::uint32_t> sort_keys(KeyView keys) {
    assert(keys.size() <= std::numeric_limits<std::uint32_t>::max());
    std::vector<Entry> entries(keys.size());
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i].at = static_cast<std::uint32_t>(i);

    // A stack and not recursion: equal keys may be 64 KiB long.
    struct Run {
        std::size_t first, last, depth;
    };
    std::vector<Run> runs = {{0, entries.size(), 0}};
    while (!runs.empty()) {
        const auto [first, last, depth] = runs.back();
        runs.pop_back();
        for (std::size_t i = first; i < last; ++i)
            entries[i].piece = piece_of(keys[entries[i].at], depth);
        std::sort(entries.begin() + static_cast<std::ptrdiff_t>(first),
                  entries.begin() + static_cast<std::ptrdiff_t>(last),
                  [](const Entry& a, const Entry& b) {
                      return std::tie(a.piece, a.at) < std::tie(b.piece, b.at);
                  });
        for (std::size_t begin = first; begin < last;) {
            std::size_t end = begin + 1;
            while (end < last && entries[end].piece == entries[begin].piece) ++end;
            // A zero byte at the end of the piece: these keys end here, and are equal.
            const bool goes_on = (entries[begin].piece & 0xFF) != 0;
            if (end - begin > 1 && goes_on) runs.push_back({begin, end, depth + kPiece});
            begin = end;
        }
    }
    std::vector<std::uint32_t> order(entries.size());
    std::ranges::transform(entries, order.begin(), [](const Entry& entry) { return entry.at; });
    return order;
}

}  // namespace gloved::convert
