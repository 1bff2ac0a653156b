// v4: v3's eight threads add up by __shfl_down_sync, and a query allocates nothing and waits once.
//
// Expected limit: one read of the model by 4-byte loads (dot_product, writing 8 bytes a row), then
// the selection's launches: one for FirstMerge and one a round, each a few microseconds for next to
// no work.
//
// Shuffles need no shared memory and no barrier: they exchange registers and are themselves the
// point where the named threads meet. The mask names the whole warp, and the whole warp arrives,
// since threads whose row does not exist take part too.
//
// Discarded: the implicit warp-synchronous reduction, that is v3's sum over `volatile` shared
// memory without __syncwarp(), or shuffles without a mask. It relied on the 32 threads of a warp
// running in lockstep, which the programming model never promised and which ended with Volta
// (compute capability 7.0): each thread has a program counter of its own, the scheduler may run one
// side of a branch far ahead of the other, and the compiler may reorder or duplicate code on that
// assumption. A thread may then read its neighbour's partial sum before it is written, or after the
// next step has overwritten it: results that are right on one compiler, block size or card and
// silently wrong on the next. `volatile` forces the accesses to memory but orders nothing between
// threads. Shuffles without a mask no longer compile for 7.0 and up. It saved one instruction a
// step; hence no rung of it.
//
// Layout as v3's. Shared memory: 4 dim bytes. One stream; waits once, at the end. The score is
// valid in the first thread of a group. Score: the sum's order is v3's, and so is the bound.

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/cuda/ladder/clock.hpp"
#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/resident.hpp"
#include "kernels/cuda/ladder/rungs.hpp"
#include "kernels/cuda/ladder/score.hpp"
#include "kernels/cuda/ladder/stepwise.hpp"

namespace gloved::kernels::ladder {
namespace {

constexpr unsigned kThreadsARow = 8;
constexpr unsigned kWholeWarp = 0xFFFFFFFFU;

__global__ void dot_product(const DotArguments arguments) {
    extern __shared__ float query[];
    for (unsigned i = threadIdx.x; i < arguments.dim; i += kBlockThreads)
        query[i] = arguments.query[i];
    __syncthreads();

    const std::size_t slot =
        (static_cast<std::size_t>(blockIdx.x) * kBlockThreads + threadIdx.x) / kThreadsARow;
    const unsigned part = threadIdx.x % kThreadsARow;
    float sum = 0;
    if (slot < arguments.rows) {
        const float* row = arguments.vectors + slot * arguments.dim;
        for (unsigned i = part; i < arguments.dim; i += kThreadsARow)
            sum = fmaf(query[i], row[i], sum);
    }
    for (int offset = kThreadsARow / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(kWholeWarp, sum, static_cast<unsigned>(offset), kThreadsARow);
    }
    if (part != 0 || slot >= arguments.slots) return;
    if (slot >= arguments.rows) {
        arguments.entries[slot] = Entry();
        return;
    }
    const float score = float_score(sum, arguments.query_norm, arguments.norms[slot]);
    arguments.entries[slot] = Entry{score, static_cast<std::uint32_t>(slot)};
}

class V4 final : public Rung {
  public:
    static Result<std::unique_ptr<Rung>> create(const RungParts& parts) {
        auto rung = std::unique_ptr<V4>(new V4(parts.resident));
        if (Status done = rung->prepare(); !done) return done.error();
        return std::unique_ptr<Rung>(std::move(rung));
    }

    const RungInfo& info() const override { return kV4; }

    Result<std::vector<Hit>> search(const QueryVector& query, std::size_t k,
                                    RungTimes* times) override {
        assert(k >= 1 && k <= kMaxLadderHits && query.values.size() == model_->dim);
        if (times != nullptr) *times = {};
        const auto start = Clock::now();
        const std::size_t wanted = std::min(k, model_->rows);
        if (Status done = enqueue(query, wanted, times != nullptr); !done) return done.error();
        if (Status done = stream_.synchronize(); !done) return done.error();
        std::vector<Hit> hits = to_hits(best_.span().first(wanted));
        if (times != nullptr) {
            times->total = ms_since(start);
            if (Status done = phases_.read(*times); !done) return done.error();
        }
        return hits;
    }

  private:
    explicit V4(std::shared_ptr<const ResidentModel> model) : model_(std::move(model)) {}

    Status prepare() {
        if (Status done = cuda::use_device(model_->device); !done) return done.error();
        auto stream = cuda::Stream::create();
        if (!stream) return stream.error();
        auto phases = Phases::create();
        if (!phases) return phases.error();
        auto scaled = cuda::PinnedBuffer<float>::allocate(model_->dim);
        if (!scaled) return scaled.error();
        auto query = cuda::DeviceBuffer<float>::allocate(model_->dim);
        if (!query) return query.error();
        // Whole lists, whatever k is.
        auto entries = cuda::DeviceBuffer<Entry>::allocate(model_->rows + kMaxLadderHits);
        if (!entries) return entries.error();
        auto best = cuda::PinnedBuffer<Entry>::allocate(kMaxLadderHits);
        if (!best) return best.error();
        stream_ = *std::move(stream);
        phases_ = *std::move(phases);
        scaled_ = *std::move(scaled);
        query_ = *std::move(query);
        entries_ = *std::move(entries);
        best_ = *std::move(best);
        return {};
    }

    Status enqueue(const QueryVector& query, std::size_t wanted, bool timed) {
        if (Status done = cuda::use_device(model_->device); !done) return done.error();
        phases_.begin(timed);
        // So that an answer that is never written shows.
        std::fill_n(best_.data(), wanted, Entry());
        const std::size_t lists = lists_for(model_->rows, wanted);
        DotArguments arguments;
        arguments.vectors = model_->vectors.data();
        arguments.norms = model_->norms.data();
        arguments.query = query_.data();
        arguments.entries = entries_.data();
        arguments.rows = model_->rows;
        arguments.slots = lists * wanted;
        arguments.dim = static_cast<std::uint32_t>(model_->dim);
        arguments.query_norm = scale_query(query, scaled_.span());

        if (Status done =
                cuda::copy_async<float>(query_.data(), scaled_.data(), model_->dim, stream_);
            !done) {
            return done.error();
        }
        if (Status done = phases_.mark(Phases::kDotBegins, stream_); !done) return done.error();
        if (Status done =
                launch("v4 dot_product", dot_product, blocks_for(arguments.slots * kThreadsARow),
                       arguments.dim * sizeof(float), stream_, arguments);
            !done) {
            return done.error();
        }
        if (Status done = phases_.mark(Phases::kDotEnds, stream_); !done) return done.error();
        if (Status done =
                first_merge(ListsIn::private_memory, entries_.data(), lists, wanted, stream_);
            !done) {
            return done.error();
        }
        if (Status done = phases_.mark(Phases::kFirstMergeEnds, stream_); !done)
            return done.error();
        if (Status done = botched_merge_sort(ListsIn::private_memory, entries_.data(), lists,
                                             wanted, false, stream_);
            !done) {
            return done.error();
        }
        if (Status done = phases_.mark(Phases::kMergeSortEnds, stream_); !done) return done.error();
        return cuda::copy_async<Entry>(best_.data(), entries_.data(), wanted, stream_);
    }

    std::shared_ptr<const ResidentModel> model_;
    cuda::Stream stream_;
    Phases phases_;
    cuda::PinnedBuffer<float> scaled_;   // (dim)
    cuda::DeviceBuffer<float> query_;    // (dim)
    cuda::DeviceBuffer<Entry> entries_;  // (rows + kMaxLadderHits)
    cuda::PinnedBuffer<Entry> best_;     // (kMaxLadderHits)
};

}  // namespace

constinit const RungInfo kV4 = {
    "v4",
    "v3's eight threads add up by __shfl_down_sync, and a query allocates nothing and waits once.",
    "One read of the model by 4-byte loads, then a launch for each round of the merge.",
    false,
    true,
    ladder_score_bound};

Result<std::unique_ptr<Rung>> make_v4(const RungParts& parts) { return V4::create(parts); }

}  // namespace gloved::kernels::ladder
