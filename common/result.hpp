// Result and Error: how functions report faults of files, peers and devices.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gloved {

/// Kinds of faults. Callers may branch on the code, never on the message.
enum class ErrorCode {
    // The codes of the wire (common/wire/PROTOCOL.md): reasons to refuse a request. Programs use
    // some of them for their own faults, such as bad_request for wrong options.
    bad_request,
    unknown_word,
    unknown_model,
    unknown_list,
    zero_vector,
    too_long,
    forbidden,
    busy,
    timeout,
    idle,  ///< the daemon closes a connection on which no request came for too long
    unavailable,
    internal,
    // Faults of files and the system.
    io,           ///< the operating system refused; the message carries its reason
    damaged,      ///< a file contradicts itself
    mismatch,     ///< two files do not belong together
    unsupported,  ///< a file is whole, but not for this version
    bad_source,   ///< an input that cannot be used, such as a malformed line
    conflict,     ///< a file or directory is in the way, or a model changed meanwhile
    interrupted,  ///< the user asked to stop
    device,       ///< a GPU or its driver failed; objects that use it cannot be used any more
};

/// A fault and its message, which names the file or word and, if there is one, the remedy.
struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message;
    std::string subject = {};  ///< for unknown_word: the word, byte for byte
};

/// A T, or the Error that prevented it.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const { return state_.index() == 0; }

    /// The value. Asserts that there is one.
    T& operator*() & {
        assert(*this);
        return *std::get_if<0>(&state_);
    }
    const T& operator*() const& {
        assert(*this);
        return *std::get_if<0>(&state_);
    }
    T&& operator*() && {
        assert(*this);
        return std::move(*std::get_if<0>(&state_));
    }
    T* operator->() { return &**this; }
    const T* operator->() const { return &**this; }

    /// The error. Asserts that there is one.
    const Error& error() const& {
        assert(!*this);
        return *std::get_if<1>(&state_);
    }
    Error&& error() && {
        assert(!*this);
        return std::move(*std::get_if<1>(&state_));
    }

  private:
    std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    explicit operator bool() const { return !error_; }
    const Error& error() const& {
        assert(error_);
        return *error_;
    }
    Error&& error() && {
        assert(error_);
        return std::move(*error_);
    }

  private:
    std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace gloved
