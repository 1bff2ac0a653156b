// RandomWords: picks random words of a model as queries of benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"

namespace gloved::bench {

/// Picks random rows whose vectors are not zero. The same model and seed give the same rows. The
/// model must outlive it and have at least one such row.
class RandomWords {
  public:
    RandomWords(const format::Model& model, std::uint64_t seed) : model_(model), random_(seed) {}

    /// The next random row.
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
