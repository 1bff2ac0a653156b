// error_with: makes an Error whose message is formatted.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "common/result.hpp"

namespace gloved {

/// An Error whose message is fmt::format(format, arguments…).
template <class... Arguments>
Error error_with(ErrorCode code, fmt::format_string<Arguments...> format,
                 Arguments&&... arguments) {
    return {code, fmt::format(format, std::forward<Arguments>(arguments)...)};
}

}  // namespace gloved
