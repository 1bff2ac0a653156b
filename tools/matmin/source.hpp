// Source: the input of gloved-matmin. Detects whether a file or pipe has matrices as text or as
// .npy, plain or packed, and reads it.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// An open file or pipe with matrices, which is read once, from beginning to end.
class Source {
  public:
    /// Opens `path`, or stdin for «-»; see source::Input::open for `stop` and `member`. Errors:
    /// those of source::Input and of npy::parse_header.
    static Result<Source> open(const std::string& path, const std::atomic<bool>& stop,
                               const std::string& member = {});

    /// Type of the numbers; float64 for text, which does not say. `read` refuses Type::other.
    npy::Type type() const { return header_ ? header_->type : npy::Type::float64; }

    /// Reads all matrices by read_text or read_npy, which have the parameters and errors. Call it
    /// once.
    template <class T>
    Result<Reading<T>> read(const ReadOptions& options, const Begin<T>& begin);

  private:
    explicit Source(source::Input input) : input_(std::move(input)) {}

    source::Input input_;
    std::optional<npy::Header> header_;
};

}  // namespace gloved::matmin
