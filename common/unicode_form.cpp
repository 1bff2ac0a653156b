#include "common/unicode_form.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace gloved {
namespace {

std::optional<std::string> in_form(std::string_view text, utf8proc_option_t form) {
    if (text.size() > kMaxOtherFormBytes) return std::nullopt;
    // Nearly all words are ASCII, which has one form.
    if (std::ranges::none_of(text, [](unsigned char byte) { return byte >= 0x80; }))
        return std::nullopt;
    utf8proc_uint8_t* mapped = nullptr;
    const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                     static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form));
    if (length < 0) return std::nullopt;
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(mapped, &std::free);
    std::string result(mapped, mapped + length);
    return result == text ? std::nullopt : std::optional(std::move(result));
}

}  // namespace

std::optional<std::string> composed(std::string_view text) {
    return in_form(text, UTF8PROC_COMPOSE);
}

std::optional<std::string> decomposed(std::string_view text) {
    return in_form(text, UTF8PROC_DECOMPOSE);
}

}  // namespace gloved
