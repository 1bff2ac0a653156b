// Fields of headers, at their offsets. Files are little-endian, and so are we (layout.hpp).
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace gloved::format {

template <class T>
void put(std::span<std::byte> bytes, std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

}  // namespace gloved::format
