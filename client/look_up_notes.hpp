// What the daemon tells about words of a request that the model does not have as they were typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/wire/reply.hpp"

namespace gloved::client {

/// Messages for the user; none if the model had all words. `request` is the one that `status`
/// answers.
std::vector<std::string> look_up_notes(std::string_view request, const wire::StatusLine& status);

}  // namespace gloved::client
