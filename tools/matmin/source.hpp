// Opens a file or pipe of matrices, text or .npy, packed or not.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// A source of matrices. Reads it once, from beginning to end.
class Source {
  public:
    /// Opens `path`, or stdin for «-»; see source::Input::open for `stop` and `member`. Errors:
    /// those of source::Input, of npy::parse_header.
    static Result<Source> open(const std::string& path, const std::atomic<bool>& stop,
                               const std::string& member = {});

    /// Type of its numbers: float64 for text, which does not say. `read` refuses Type::other.
    npy::Type type() const { return header_ ? header_->type : npy::Type::float64; }

    /// Reads all matrices, see read_text and read_npy. Call it once.
    template <class T>
    Result<Reading<T>> read(const ReadOptions& options, const Begin<T>& begin);

  private:
    explicit Source(source::Input input) : input_(std::move(input)) {}

    source::Input input_;
    std::string head_;  // read, not yet passed on
    std::optional<npy::Header> header_;
};

}  // namespace gloved::matmin
