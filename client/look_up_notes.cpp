#include "client/look_up_notes.hpp"

#include <fmt/format.h>

#include "common/unicode_form.hpp"

namespace gloved::client {

std::vector<std::string> look_up_notes(std::string_view request, const wire::StatusLine& status) {
    std::vector<std::string> notes;
    const auto add = [&](std::string_view key, std::string_view text) {
        if (const auto value = status.field(key); !value.empty())
            notes.push_back(fmt::format("{}: {}", text, value));
    };
    add("skipped", "not in the model and left out");
    add("replaced", "taken in another case or Unicode form");
    add("unlisted", "further words that were left out or taken so");
    // Nothing is found also for a prefix that no word begins with.
    const bool lacks = !status.field("skipped").empty() || status.lines == 0;
    if (const auto hint = uncomposed_hint("the request", request); lacks && hint)
        notes.push_back(*hint);
    return notes;
}

}  // namespace gloved::client
