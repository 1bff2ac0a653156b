// Finds the name that somebody meant who mistyped one: an option's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gloved {

/// The one of the `names` that differs from `name` in the fewest letters that are missing, too
/// many, wrong, or exchanged with their neighbour; of several the first. It differs in up to two,
/// but less than half of them, or begins with `name`, whose last letter may differ. Empty if there
/// is none.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace gloved
