// A file or pipe of matrices, text or .npy, whatever it is packed in.
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

/// Read once, from the beginning to the end.
class Source {
  public:
    /// Opens `path`, or stdin for «-»; see source::Input::open for `stop` and `member`. Errors:
    /// those of source::Input, of npy::parse_header.
    static Result<Source> open(const std::string& path, const std::atomic<bool>& stop,
                               const std::string& member = {});

    /// What its numbers are: for text, which does not say, Type::float64. Type::other is of no use
    /// but for the message that read gives.
    npy::Type type() const { return header_ ? header_->type : npy::Type::float64; }

    /// See read_text and read_npy. Once.
    template <class T>
    Result<Reading<T>> read(const ReadOptions& options, const Begin<T>& begin);

  private:
    explicit Source(source::Input input) : input_(std::move(input)) {}

    source::Input input_;
    std::string head_;  // read, not yet handed on
    std::optional<npy::Header> header_;
};

}  // namespace gloved::matmin
