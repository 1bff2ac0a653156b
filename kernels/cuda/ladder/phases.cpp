#include "kernels/cuda/ladder/phases.hpp"

#include <utility>

#include "common/result.hpp"

namespace gloved::kernels::ladder {

Result<Phases> Phases::create() {
    Phases phases;
    for (cuda::Event& event : phases.events_) {
        auto made = cuda::Event::create();
        if (!made) return made.error();
        event = *std::move(made);
    }
    return phases;
}

Result<double> Phases::between(Border from, Border to) const {
    const auto ms = cuda::elapsed_ms(events_[from], events_[to]);
    if (!ms) return ms.error();
    return static_cast<double>(*ms);
}

Status Phases::read(RungTimes& times) const {
    const auto dot_product = between(kDotBegins, kDotEnds);
    if (!dot_product) return dot_product.error();
    const auto first_merge = between(kDotEnds, kFirstMergeEnds);
    if (!first_merge) return first_merge.error();
    const auto merge_sort = between(kFirstMergeEnds, kMergeSortEnds);
    if (!merge_sort) return merge_sort.error();
    times.dot_product = *dot_product;
    times.first_merge = *first_merge;
    times.botched_merge_sort = *merge_sort;
    return {};
}

}  // namespace gloved::kernels::ladder
