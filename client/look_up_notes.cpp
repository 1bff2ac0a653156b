#include "client/look_up_notes.hpp"

#include <fmt/format.h>

#include <string_view>

namespace gloved::client {

std::vector<std::string> look_up_notes(const wire::StatusLine& status) {
    std::vector<std::string> notes;
    const auto add = [&](std::string_view key, std::string_view text) {
        if (const auto value = status.field(key); !value.empty())
            notes.push_back(fmt::format("{}: {}", text, value));
    };
    add("skipped", "not in the model and left out");
    add("replaced", "taken in another case or Unicode form");
    add("unlisted", "further words that were left out or taken so");
    return notes;
}

}  // namespace gloved::client
