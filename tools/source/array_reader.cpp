#include "tools/source/array_reader.hpp"

#include <cassert>

namespace gloved::source {

Result<std::size_t> ArrayReader::read(std::span<char> buffer) {
    assert(buffer.size() <= left_);
    const std::size_t from_head = head_.copy(buffer.data(), buffer.size());
    head_.erase(0, from_head);
    const auto got = input_.read(buffer.subspan(from_head));
    if (!got) return got.error();
    left_ -= from_head + *got;
    return from_head + *got;
}

Result<bool> ArrayReader::has_more() {
    assert(left_ == 0);
    if (!head_.empty()) return true;
    char byte = 0;
    const auto got = input_.read({&byte, 1});
    if (!got) return got.error();
    return *got != 0;
}

}  // namespace gloved::source
