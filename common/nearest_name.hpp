// Finds the name that somebody meant who mistyped one: an option's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gloved {

/// The first of the `names` that begin with `name`, or else are nearest to it: by up to two letters
/// that are missing, too many, wrong, or exchanged with their neighbour, but less than half of
/// them. Empty if none is so near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace gloved
