// The oracle of the tests is that of gloved-verify engines: there is one. Here it answers whole
// queries.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::tests {

using verify::Lists;
using verify::oracle_cosmul;
using verify::oracle_query;
using verify::oracle_scores;
using verify::oracle_top;
using verify::Weights;

/// The oracle's answers to queries on one model. The order of all rows is computed once for a
/// vector, however many queries and engines are compared with it.
class Oracle {
  public:
    /// `model` must outlive this. `lists` are those that filters name.
    explicit Oracle(const format::Model& model, Lists lists = {});

    /// All rows but those with NaN, best first by the scores of the query's kind.
    const std::vector<kernels::Hit>& order(const kernels::Query& query);
    /// The score of a row, of the query's kind. Throws std::runtime_error if it is NaN.
    double score(const kernels::Query& query, kernels::Row row);
    /// Hits, or the count of a CountBefore.
    kernels::Answer answer(const kernels::Query& query);

  private:
    /// What scores depend on.
    struct Vectors {
        bool product = false;  ///< of CosMul
        std::vector<std::vector<float>> positives;
        std::vector<std::vector<float>> negatives;
        auto operator<=>(const Vectors&) const = default;
    };
    static Vectors vectors_of(const kernels::Query& query);

    const format::Model& model_;
    const Lists lists_;
    const std::vector<double> norms_;
    std::map<Vectors, std::vector<kernels::Hit>> orders_;
};

}  // namespace gloved::tests
