// How a function says that something outside the program went wrong: a file, a peer, a device.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gloved {

/// What kind of fault it is: the part of an Error that a program may branch on.
enum class ErrorCode {
    // What a request can be refused for. These are the codes of the wire (common/wire/PROTOCOL.md).
    bad_request,
    unknown_word,
    unknown_model,
    zero_vector,
    too_long,
    forbidden,
    busy,
    timeout,
    idle,  ///< nothing was asked for too long; the answer to no request
    unavailable,
    internal,
    // What can be wrong with files and the system.
    io,           ///< the operating system refused; the message carries its reason
    damaged,      ///< a file contradicts itself
    mismatch,     ///< two files do not belong together
    unsupported,  ///< a file is whole, but not for this version
    bad_source,   ///< a download that cannot be converted as it is
    conflict,     ///< something that is not ours stands in the way
    interrupted,  ///< the user asked to stop
    device,       ///< a GPU or its driver failed; what was using it is of no more use
};

/// A fault with a message for people: it names the file or word and, where there is one, the
/// remedy.
struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message;
    std::string subject = {};  ///< the word that an unknown_word is about, byte for byte
};

/// A T, or the Error that kept it from being made.
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
