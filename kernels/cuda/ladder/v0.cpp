// v0: one thread of the processor scores row after row, then inserts every score into a list of the
// best.
//
// The original's sequential search, what its GPU versions were checked against and compared with.
//
// Expected limit: one dependent addition an element, since float32 sums may not be reordered: two
// to four cycles each, 658.8 M of them at 2,196,016 x 300, some tenths of a second; not the memory,
// which one thread reads at 10 GB/s and more. (The cpu engine is what this becomes with vector
// instructions and all cores.)
//
// Score: products and sum in order of elements, each rounded: n roundings at most, the bound of
// score.hpp.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/ladder/clock.hpp"
#include "kernels/cuda/ladder/entry.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/cuda/ladder/rungs.hpp"
#include "kernels/cuda/ladder/score.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::ladder {
namespace {

class V0 final : public Rung {
  public:
    explicit V0(const format::Model& model)
        : model_(model), scaled_(model.dim()), scores_(model.rows()) {}

    const RungInfo& info() const override { return kV0; }

    Result<std::vector<Hit>> search(const QueryVector& query, std::size_t k,
                                    RungTimes* times) override {
        assert(k >= 1 && k <= kMaxLadderHits && query.values.size() == model_.dim());
        const auto start = Clock::now();
        const float query_norm = scale_query(query, scaled_);
        score_rows(query_norm);
        const double scored_ms = ms_since(start);
        std::vector<Hit> hits = to_hits(select(std::min(k, model_.rows())));
        if (times != nullptr) {
            *times = {};
            times->total = ms_since(start);
            times->dot_product = scored_ms;
            times->first_merge = times->total - scored_ms;
        }
        return hits;
    }

  private:
    void score_rows(float query_norm) {
        const float* row = model_.vectors().data();
        for (std::size_t r = 0; r < scores_.size(); ++r, row += scaled_.size()) {
            float dot = 0;
            for (std::size_t i = 0; i < scaled_.size(); ++i) dot += scaled_[i] * row[i];
            scores_[r] = float_score(dot, query_norm, static_cast<float>(model_.norms()[r]));
        }
    }

    std::vector<Entry> select(std::size_t wanted) const {
        std::vector<Entry> best(wanted);
        for (std::size_t r = 0; r < scores_.size(); ++r) {
            const Entry entry{scores_[r], static_cast<std::uint32_t>(r)};
            if (!comes_before(entry, best.back())) continue;
            std::size_t place = wanted - 1;
            for (; place > 0 && comes_before(entry, best[place - 1]); --place)
                best[place] = best[place - 1];
            best[place] = entry;
        }
        return best;
    }

    const format::Model& model_;
    std::vector<float> scaled_;
    std::vector<float> scores_;
};

}  // namespace

constinit const RungInfo kV0 = {
    "v0",
    "One thread of the processor scores row after row, then inserts every score into a list of the "
    "best.",
    "One dependent float32 addition an element: 4 processor cycles each.",
    false,
    false,
    ladder_score_bound};

Result<std::unique_ptr<Rung>> make_v0(const RungParts& parts) {
    return std::unique_ptr<Rung>(std::make_unique<V0>(parts.model));
}

}  // namespace gloved::kernels::ladder
