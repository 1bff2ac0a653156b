// error_with makes an Error whose message is formatted. The codes of many messages have a function
// of their name.
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

template <class... Arguments>
Error bad_request(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return error_with(ErrorCode::bad_request, format, std::forward<Arguments>(arguments)...);
}

template <class... Arguments>
Error bad_source(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return error_with(ErrorCode::bad_source, format, std::forward<Arguments>(arguments)...);
}

template <class... Arguments>
Error damaged(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return error_with(ErrorCode::damaged, format, std::forward<Arguments>(arguments)...);
}

template <class... Arguments>
Error conflict(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return error_with(ErrorCode::conflict, format, std::forward<Arguments>(arguments)...);
}

}  // namespace gloved
