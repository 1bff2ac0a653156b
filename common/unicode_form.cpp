#include "common/unicode_form.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "common/quoting.hpp"

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

std::string other_form_hint(std::string_view word,
                            const std::function<bool(const std::string&)>& is_there,
                            std::size_t limit) {
    std::string hint;
    const auto mention = [&](const std::optional<std::string>& form, std::string_view name) {
        if (!form || !is_there(*form)) return;
        hint += fmt::format("; the same letters, {}, are: {}", name, printable(*form, limit));
    };
    mention(composed(word), "composed (Unicode NFC)");
    mention(decomposed(word), "decomposed (Unicode NFD)");
    return hint;
}

std::optional<std::string> uncomposed_hint(std::string_view name, std::string_view text) {
    if (!composed(text)) return std::nullopt;
    return fmt::format(
        "{} has letters that are not composed (Unicode NFC); the same letters, "
        "composed, may be in the model",
        name);
}

}  // namespace gloved
