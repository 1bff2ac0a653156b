// The choice by name between makers of reducers and of distance engines.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gloved::kernels {

/// A maker as lists show it.
struct MakerEntry {
    std::string name;
    std::string unavailable;  ///< why it cannot run on this machine; empty when it can
};

/// `makers` is a table in order of preference, of anything with a `name` and `Result<std::string>
/// unavailable()`, which gives an empty string where it can run.
template <class Makers>
std::vector<MakerEntry> entries_of(const Makers& makers) {
    std::vector<MakerEntry> entries;
    for (const auto& maker : makers) {
        const auto unavailable = maker.unavailable();
        entries.push_back({maker.name, unavailable ? *unavailable : unavailable.error().message});
    }
    return entries;
}

/// The maker called `name`, or for «auto», where `makers` has that, the first that can run. Errors:
/// unavailable; what `unavailable` fails with, since a device that fails is no reason to take the
/// next engine in silence.
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
            return Error{ErrorCode::unavailable,
                         fmt::format("engine '{}' cannot run: {}", name, *unavailable)};
        }
    }
    return Error{ErrorCode::unavailable, fmt::format("no engine '{}': there are {}", name, names)};
}

}  // namespace gloved::kernels
