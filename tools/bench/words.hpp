// Random words to query.
#pragma once

#include <cstdint>
#include <random>

#include "common/format/model.hpp"

namespace gloved::bench {

/// Random rows that are not zero, by a seed. The model must outlive it and have such a row.
class RandomWords {
  public:
    RandomWords(const format::Model& model, std::uint64_t seed) : model_(model), random_(seed) {}

    format::Row next() {
        auto row = static_cast<std::size_t>(random_() % model_.rows());
        while (!(model_.norms()[row] > 0)) row = (row + 1) % model_.rows();
        return static_cast<format::Row>(row);
    }

  private:
    const format::Model& model_;
    std::mt19937_64 random_;
};

}  // namespace gloved::bench
