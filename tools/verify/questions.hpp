// Random questions about a model: every kind, size and filter, and vectors that are made to be
// hard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {

/// A query, and what it was made of.
struct Question {
    /// One vector: an expression of words, or numbers of its own.
    struct Source {
        Weights weights;  ///< empty where `recipe` says how the numbers came about
        std::string recipe = {};
    };

    kernels::Query query;
    std::vector<Source> sources;  ///< one a vector, in the order of the query's
    bool unit = false;            ///< whether words count with their directions
};

/// Questions by number. Each depends on the model, the seed and its number alone, on any machine.
/// Any thread may ask.
///
/// Two in five are words, one in four expressions, the others vectors: random, near to rows and
/// opposite to them, of one component, of few, of equal ones, of such as are far apart, and such as
/// meet the 4-bit plane's inequality with equality. k is mostly 10, else 1, 2, 100, 1,024 or more
/// than there are rows. Filters leave one row or all of them, and smallest scores lie above, below
/// and exactly on scores of rows. Among the first three are a 3CosMul and a count.
class Questions {
  public:
    /// The model must outlive it.
    Questions(const format::Model& model, std::uint64_t seed) : model_(model), seed_(seed) {}

    Question at(std::size_t number) const;

  private:
    const format::Model& model_;
    std::uint64_t seed_;
};

/// How many questions are asked together, one batch after the other: alone, and up to 1,024, in
/// mixed order. Their sum is `questions`.
std::vector<std::size_t> batch_sizes(std::size_t questions, std::uint64_t seed);

/// «3CosMul of "king", "woman" (unit), k = 10, rank < 17, 3 excluded».
std::string describe(const format::Model& model, const Question& question);

}  // namespace gloved::verify
