// The bytes of a download: from a file or stdin, inflated where they are gzip.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::convert {

/// Reads a source from its beginning to its end, once. What it is packed in is told by its content, never by its name.
/// Not safe for concurrent use.
class Input {
  public:
    /// Opens the file `path`, or stdin for «-», and looks at its first bytes. `stop` is looked at before every read,
    /// and at least five times a second while a pipe is silent; it outlives the Input. Errors: io, interrupted.
    static Result<Input> open(const std::string& path, const std::atomic<bool>& stop);

    Input(Input&&) noexcept;
    Input& operator=(Input&&) = delete;
    ~Input();

    /// Fills `buffer` with text, as far as there is any: fewer bytes than asked for mean the end.
    /// Errors: io, interrupted; bad_source for gzip that is damaged or ends too early, naming the byte.
    Result<std::size_t> read(std::span<char> buffer);

    /// «-» or the path as given.
    const std::string& name() const { return name_; }
    /// «gzip» or «none».
    std::string_view compression() const { return inflater_ == nullptr ? "none" : "gzip"; }
    /// Bytes of the source consumed so far, as they lie on disk.
    std::uint64_t source_bytes() const { return source_bytes_; }
    /// Its size, or 0 where that is not known.
    std::uint64_t total_bytes() const { return total_bytes_; }
    /// XXH3-64 of the bytes consumed so far, as they lie on disk.
    std::uint64_t checksum() const { return checksum_.value(); }

  private:
    struct Inflater;

    Input(std::string name, const std::atomic<bool>& stop);
    Result<std::size_t> read_source(std::span<char> buffer);
    Result<std::size_t> take(std::span<char> buffer);
    Result<std::size_t> inflate(std::span<char> buffer);
    Status refill();

    std::string name_;
    const std::atomic<bool>* stop_;
    UniqueFd owned_;
    int fd_ = -1;
    std::uint64_t total_bytes_ = 0;
    std::uint64_t source_bytes_ = 0;
    format::Checksum checksum_;
    std::string block_;  // read from the source, not yet handed on
    std::size_t block_used_ = 0;
    std::unique_ptr<Inflater> inflater_;
};

}  // namespace gloved::convert
