#include "client/option_values.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/expr/expression.hpp"
#include "common/quoting.hpp"

namespace gloved::client {

Result<std::chrono::milliseconds> parse_seconds(const std::string& option, const std::string& text,
                                                double least) {
    const auto seconds = expr::parse_number(text);
    if (!seconds || !(*seconds >= least && *seconds <= kMaxSeconds)) {
        return Error{ErrorCode::bad_request,
                     fmt::format("{} takes seconds from {:g} to {:.0f}, not {}", option, least,
                                 kMaxSeconds, printable(text))};
    }
    return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(*seconds * 1000));
}

Result<std::uint64_t> parse_whole_number(const std::string& option, const std::string& text,
                                         std::uint64_t most) {
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || end != text.data() + text.size() || number == 0 || number > most) {
        return Error{ErrorCode::bad_request,
                     fmt::format("{} takes a whole number from 1 to {}, not {}", option, most,
                                 printable(text))};
    }
    return number;
}

}  // namespace gloved::client
