// random_list: random rows, for lists with which programs try and measure engines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "common/format/layout.hpp"

namespace gloved {

/// Chooses `count` of `rows` rows, each as likely as any other; all if `count` is more. In
/// ascending order. (Algorithm S of Knuth, The Art of Computer Programming, volume 2, 3.4.2.)
inline std::vector<format::Row> random_list(std::size_t rows, std::size_t count,
                                            std::mt19937_64& random) {
    std::vector<format::Row> list;
    list.reserve(std::min(count, rows));
    for (std::size_t row = 0; row < rows && list.size() < count; ++row) {
        if (random() % (rows - row) < count - list.size())
            list.push_back(static_cast<format::Row>(row));
    }
    return list;
}

}  // namespace gloved
