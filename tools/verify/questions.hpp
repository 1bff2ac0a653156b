// Questions: random queries for checking engines, of every kind, with many k and filters, and with
// vectors that are hard to answer exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {

/// A query and how it was made.
struct Question {
    /// The origin of one vector: an expression of words, or numbers.
    struct Source {
        Weights weights;          ///< empty if `recipe` describes the numbers
        std::string recipe = {};  ///< how the numbers were made, for people
    };

    kernels::Query query;
    std::vector<Source> sources;  ///< of each of the query's vectors, in their order
    bool unit = false;            ///< whether words are normalized before they are added
};

/// Lists of random words of a model, for the engines and the oracle: of 1, 10, 1,000, 100,000 and
/// 2,000,000 words, or all, and two of a half of all. They depend on model and seed alone.
Lists draw_lists(const format::Model& model, std::uint64_t seed);

/// Makes questions by their numbers. A question depends on model, seed and number alone, on any
/// machine. Safe for concurrent use.
///
/// Two in five questions are words, one in four expressions, the others vectors: random ones; near
/// or opposite to a row; with only one, few or equal components, or components of very different
/// size; and vectors for which the inequality of the 4-bit plane is an equation. k is mostly 10,
/// otherwise 1, 2, 100, 1,024 or more than there are rows. Filters leave between one row and all.
/// min_score is above, below and exactly at scores of rows. Half of them name lists of draw_lists,
/// alone or with others, also besides all other filters. The first three questions include a CosMul
/// and a CountBefore.
class Questions {
  public:
    /// `model` and `lists`, which questions may name, must outlive it.
    Questions(const format::Model& model, std::uint64_t seed, const kernels::RowLists& lists)
        : model_(model), seed_(seed), lists_(lists) {}

    /// Question number `number`, from 0.
    Question at(std::size_t number) const;

  private:
    const format::Model& model_;
    std::uint64_t seed_;
    const kernels::RowLists& lists_;
};

/// Sizes of batches, 1 to 1,024 in mixed order, that add up to `questions`.
std::vector<std::size_t> batch_sizes(std::size_t questions, std::uint64_t seed);

/// A question in words, for messages: «3CosMul of "king", "woman", "man", unit, k = 10, rank < 17,
/// 3 excluded».
std::string describe(const format::Model& model, const Question& question);

}  // namespace gloved::verify
