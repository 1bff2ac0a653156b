// ArrayReader: the numbers of a NumPy array that comes as a stream.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/source/input.hpp"

namespace gloved::source {

/// Reads the bytes behind an array's header. Not safe for concurrent use.
class ArrayReader {
  public:
    /// `head` was read from `input` already and begins with the header. `input` must outlive it.
    ArrayReader(Input& input, std::string head, const npy::Header& header)
        : input_(input), head_(std::move(head)), left_(header.data_bytes) {
        head_.erase(0, header.data_offset);
    }

    /// Bytes of the array that were not read yet, as its header says.
    std::size_t left() const { return left_; }

    /// Fills `buffer`, of at most left() bytes, with the next ones, and returns their number. Fewer
    /// than the buffer's size mean that the file ends within the array. Errors: those of
    /// Input::read.
    Result<std::size_t> read(std::span<char> buffer);

    /// Whether more bytes follow; the array must have been read. Errors: those of Input::read.
    Result<bool> has_more();

  private:
    Input& input_;
    std::string head_;  // what was read of `input_` and not returned yet
    std::size_t left_;
};

}  // namespace gloved::source
