// Chooses a maker by name: what the registries of reducers and of distance engines share. A maker
// is an entry of a registry's table that can make one kind of engine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/error_with.hpp"
#include "common/result.hpp"

namespace gloved::kernels {

/// A maker in a list for users.
struct MakerEntry {
    std::string name;
    std::string unavailable;  ///< why it cannot run on this machine; empty when it can
};

/// Lists the makers of a table. `makers` is in order of preference; each has a `name` and a
/// function `Result<std::string> unavailable()`, which says why it cannot run on this machine, or
/// nothing if it can.
template <class Makers>
std::vector<MakerEntry> entries_of(const Makers& makers) {
    std::vector<MakerEntry> entries;
    for (const auto& maker : makers) {
        const auto unavailable = maker.unavailable();
        entries.push_back({maker.name, unavailable ? *unavailable : unavailable.error().message});
    }
    return entries;
}

/// The maker called `name`. With `has_auto`, «auto» stands for the first one that can run. Errors:
/// unavailable, if there is no such maker or it cannot run; the error of `unavailable()`, since a
/// device that fails is no reason to choose the next engine silently.
template <class Maker, std::size_t Count>
Result<const Maker*> choose_maker(const Maker (&makers)[Count], const std::string& name,
                                  bool has_auto) {
    std::string names = has_auto ? "auto" : "";
    for (const Maker& maker : makers) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", maker.name);
        if (!(has_auto && name == "auto") && name != maker.name) continue;
        const auto unavailable = maker.unavailable();
        if (!unavailable) return unavailable.error();
        if (unavailable->empty()) return &maker;
        if (name == maker.name) {
            return error_with(ErrorCode::unavailable, "engine '{}' cannot run: {}", name,
                              *unavailable);
        }
    }
    return error_with(ErrorCode::unavailable, "no engine '{}': there are {}", name, names);
}

}  // namespace gloved::kernels
