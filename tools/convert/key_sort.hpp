// Sorting words that share prefixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::convert {

/// Words one behind the other, without separators.
struct KeyView {
    std::string_view bytes;
    std::span<const std::size_t> ends;

    std::size_t size() const { return ends.size(); }
    std::string_view operator[](std::size_t i) const {
        const std::size_t first = i == 0 ? 0 : ends[i - 1];
        return bytes.substr(first, ends[i] - first);
    }
};

/// The same, with the memory.
struct KeyList {
    std::string bytes;
    std::vector<std::size_t> ends;

    operator KeyView() const {
        return {bytes, ends};
    }  // NOLINT(google-explicit-constructor): a view, as of a string
    std::size_t size() const { return ends.size(); }
    std::string_view operator[](std::size_t i) const { return KeyView(*this)[i]; }
};

/// Positions in `keys` in unsigned byte order of the keys, those of equal keys ascending. At most
/// 2^32 - 1 keys, none with a NUL. Takes 16 bytes a key beside the result.
///
/// Eight bytes of each key at a time, as one integer, lie beside its position: comparing them
/// touches no key. Only keys that agree in all eight are looked at again, and then behind these:
/// what words have in common is read once for each of them, not at every comparison.
std::vector<std::uint32_t> sort_keys(KeyView keys);

}  // namespace gloved::convert
