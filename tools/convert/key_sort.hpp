// Sorts the keys of a bucket (row_buckets.hpp) by their bytes; fast for keys that share prefixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::convert {

/// A view of keys that are stored one after the other in `bytes`; key i ends at ends[i].
struct KeyView {
    std::string_view bytes;
    std::span<const std::size_t> ends;

    std::size_t size() const { return ends.size(); }
    std::string_view operator[](std::size_t i) const {
        const std::size_t first = i == 0 ? 0 : ends[i - 1];
        return bytes.substr(first, ends[i] - first);
    }
};

/// Owns the keys of a KeyView.
struct KeyList {
    std::string bytes;
    std::vector<std::size_t> ends;

    operator KeyView() const {
        return {bytes, ends};
    }  // NOLINT(google-explicit-constructor): a view, as of a string
    std::size_t size() const { return ends.size(); }
    std::string_view operator[](std::size_t i) const { return KeyView(*this)[i]; }
};

/// Returns the indices of `keys`, sorted by the keys as unsigned bytes; equal keys keep their
/// order. There are at most 2^32 - 1 keys, none with a NUL. Needs 16 bytes of memory per key
/// besides the result. Sorts by the first eight bytes of each key, as one integer stored beside its
/// index. Keys that agree in all eight are then sorted by their next eight. So a shared prefix is
/// read once per key, not once per comparison.
std::vector<std::uint32_t> sort_keys(KeyView keys);

}  // namespace gloved::convert
