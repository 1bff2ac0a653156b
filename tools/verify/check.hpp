// What the checks of gloved-verify share: the outcome of a check, and how messages name rows.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <string>

#include "common/format/model.hpp"
#include "common/quoting.hpp"

namespace gloved::verify {

/// The outcome of one check. `detail` describes the fault, or gives figures if there is none.
struct Check {
    std::string name;  ///< what was checked
    bool ok = true;
    std::string detail;
    bool of_answers = false;  ///< of answers that a daemon gave, not of the model
};

/// Called with the outcome of each check.
using Reporter = std::function<void(const Check&)>;

/// How messages name a row: «row 17 ("the")».
inline std::string row_name(const format::Model& model, std::size_t row) {
    return fmt::format("row {} ({})", row, printable(model.key(row)));
}

}  // namespace gloved::verify
