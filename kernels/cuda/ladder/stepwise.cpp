#include "kernels/cuda/ladder/stepwise.hpp"

#include <algorithm>
#include <cassert>

#include "common/result.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/cuda/ladder/score.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::ladder {

Result<std::vector<Hit>> run_stepwise(const StepwiseSearch& search, const QueryVector& query,
                                      std::size_t k, const cuda::Stream& stream, Phases& phases,
                                      RungTimes* times) {
    assert(k >= 1 && k <= kMaxLadderHits && query.values.size() == search.dim);
    const std::size_t wanted = std::min(k, search.rows);
    const std::size_t lists = lists_for(search.rows, wanted);
    phases.begin(times != nullptr);

    std::vector<float> scaled(search.dim);
    const float query_norm = scale_query(query, scaled);
    auto device_query = cuda::DeviceBuffer<float>::allocate(search.dim);
    if (!device_query) return device_query.error();
    auto entries = cuda::DeviceBuffer<Entry>::allocate(lists * wanted);
    if (!entries) return entries.error();
    if (Status done =
            cuda::copy_async<float>(device_query->data(), scaled.data(), search.dim, stream);
        !done) {
        return done.error();
    }
    if (Status done = stream.synchronize(); !done) return done.error();

    DotArguments arguments;
    arguments.vectors = search.vectors;
    arguments.norms = search.norms;
    arguments.query = device_query->data();
    arguments.entries = entries->data();
    arguments.rows = search.rows;
    arguments.slots = entries->size();
    arguments.dim = static_cast<std::uint32_t>(search.dim);
    arguments.query_norm = query_norm;
    if (Status done = phases.mark(Phases::kDotBegins, stream); !done) return done.error();
    if (Status done = search.launch_dot(arguments, stream); !done) return done.error();
    if (Status done = phases.mark(Phases::kDotEnds, stream); !done) return done.error();
    if (Status done = stream.synchronize(); !done) return done.error();

    if (Status done = first_merge(search.lists_in, entries->data(), lists, wanted, stream); !done)
        return done.error();
    if (Status done = phases.mark(Phases::kFirstMergeEnds, stream); !done) return done.error();
    if (Status done = stream.synchronize(); !done) return done.error();

    if (Status done =
            botched_merge_sort(search.lists_in, entries->data(), lists, wanted, true, stream);
        !done) {
        return done.error();
    }
    if (Status done = phases.mark(Phases::kMergeSortEnds, stream); !done) return done.error();
    if (Status done = stream.synchronize(); !done) return done.error();

    std::vector<Entry> best(wanted);
    if (Status done = cuda::copy_async<Entry>(best.data(), entries->data(), wanted, stream); !done)
        return done.error();
    if (Status done = stream.synchronize(); !done) return done.error();
    if (times != nullptr) {
        if (Status done = phases.read(*times); !done) return done.error();
    }
    return to_hits(best);
}

}  // namespace gloved::kernels::ladder
