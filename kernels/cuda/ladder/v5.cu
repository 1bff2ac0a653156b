// v5: one kernel reads the model once by 16-byte loads and keeps the best rows as it goes; no score
// is ever written.
//
// Expected limit: the memory's read bandwidth: (4 dim + 4) bytes a row, 2.644 GB at 2,196,016 x
// 300, 0.85 ms at 3.1 TB/s. Everything else hides behind it: 40 multiply-adds a thread and row are
// 7 % of the arithmetic that an H100 has in that time.
//
// Reading. Eight threads share a row and a warp takes four rows at once, as before, but each thread
// loads 16 bytes at a time (8 or 4 where dim is not a multiple of 4 or 2, since rows are packed),
// and all loads of a row are issued before the first is used: at dim 300 ten, 160 bytes a thread,
// some 80 KB on their way to each multiprocessor. The thread's part of the query stays in
// registers. For that the number of loads must be known to the compiler: instances exist for the
// dimensions that GloVe comes in (and what shares their count of loads), short rows several at
// once; others take the loop, with the query in shared memory.
//
// Selecting. A warp keeps its own k best in registers, the i-th in its lane i, which is why a
// ladder's k is at most 32. A row is compared with the last of them by one vote for all rows at
// hand; insertion is a vote (how many come before it?) and two shuffles, with neither lock nor
// barrier. A warp that sees m rows in random order inserts k (1 + ln(m / k)), some 55 of 1,000. In
// the worst order, ascending, it inserts every row: about as many instructions again as the dot
// product.
//
// Ending. A block merges its warps' lists through shared memory and writes one list; the block that
// finishes last merges those of all (a few hundred times k entries, best places first so that most
// are turned down at once) and writes the answer to host memory. No second launch, and no copy
// back.
//
// Rejected: one list a block in shared memory, behind a lock, with its threshold read by all warps:
// fewer insertions, but each stops a block's warps in turn just when all of them start; 16 threads
// a row: more idle at a row's end.
//
// Layout: vectors packed (rows, dim), the first row 16-byte aligned. Shared memory: 2 KB, and 4 dim
// bytes in the loop. One stream; waits once, at the end. The sum is valid in all eight threads.
// Score: each addition on a product's way brings in at least one other product, or exactly a zero
// (of a thread without elements, or where an accumulator starts): n roundings at most, the bound of
// score.hpp.

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/cuda/ladder/clock.hpp"
#include "kernels/cuda/ladder/entry.hpp"
#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/phases.hpp"
#include "kernels/cuda/ladder/resident.hpp"
#include "kernels/cuda/ladder/rungs.hpp"
#include "kernels/cuda/ladder/score.hpp"

namespace gloved::kernels::ladder {
namespace {

constexpr unsigned kWholeWarp = 0xFFFFFFFFU;
constexpr unsigned kWarpThreads = 32;
constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
constexpr unsigned kThreadsARow = 8;
constexpr unsigned kWarpRows = kWarpThreads / kThreadsARow;

static_assert(kMaxLadderHits <= kWarpThreads, "a warp keeps one hit a lane");

struct Arguments {
    const float* vectors = nullptr;   // (rows, dim)
    const float* norms = nullptr;     // (rows)
    const float* query = nullptr;     // (dim), scaled
    Entry* block_lists = nullptr;     // (wanted, blocks): place by place, written and read by this
                                      // launch alone
    unsigned* blocks_done = nullptr;  // 0 before and after
    Entry* best = nullptr;            // (wanted) host memory
    std::size_t rows = 0;
    unsigned dim = 0;
    unsigned wanted = 0;
    float query_norm = 0;
};

__device__ Entry shuffle(const Entry& entry, unsigned from) {
    return {__shfl_sync(kWholeWarp, entry.score, static_cast<int>(from)),
            __shfl_sync(kWholeWarp, entry.row, static_cast<int>(from))};
}

/// The best entries that a warp has met. All of its threads call every function together.
class WarpList {
  public:
    __device__ WarpList(unsigned lane, unsigned wanted) : lane_(lane), wanted_(wanted) {}

    /// This lane's place; valid in the first `wanted` lanes.
    __device__ const Entry& mine() const { return mine_; }
    /// An entry must come before this to get in. The same in all lanes.
    __device__ const Entry& last() const { return last_; }

    /// Each thread offers an entry, or none.
    __device__ void offer(bool offers, const Entry& entry) {
        unsigned left = __ballot_sync(kWholeWarp, offers && comes_before(entry, last_));
        for (; left != 0; left &= left - 1) {
            const Entry next =
                shuffle(entry, static_cast<unsigned>(__ffs(static_cast<int>(left))) - 1);
            if (comes_before(next, last_)) insert(next);
        }
    }

  private:
    // All 32 lanes are kept in order, whatever `wanted` is: that costs nothing, and no lane is
    // special.
    __device__ void insert(const Entry& entry) {
        const auto place =
            static_cast<unsigned>(__popc(__ballot_sync(kWholeWarp, comes_before(mine_, entry))));
        const Entry above{__shfl_up_sync(kWholeWarp, mine_.score, 1),
                          __shfl_up_sync(kWholeWarp, mine_.row, 1)};
        if (lane_ == place) mine_ = entry;
        if (lane_ > place) mine_ = above;
        last_ = shuffle(mine_, wanted_ - 1);
    }

    unsigned lane_;
    unsigned wanted_;
    Entry mine_;
    Entry last_;
};

// One load of 4, 2 or 1 floats. Products go to one accumulator a component, so that the chain of
// additions is short; single floats take turns.

template <unsigned kWidth>
struct LoadOf;
template <>
struct LoadOf<4> {
    using Type = float4;
};
template <>
struct LoadOf<2> {
    using Type = float2;
};
template <>
struct LoadOf<1> {
    using Type = float;
};

__device__ void multiply_add(const float4& q, const float4& x, unsigned, float (&sums)[4]) {
    sums[0] = fmaf(q.x, x.x, sums[0]);
    sums[1] = fmaf(q.y, x.y, sums[1]);
    sums[2] = fmaf(q.z, x.z, sums[2]);
    sums[3] = fmaf(q.w, x.w, sums[3]);
}
__device__ void multiply_add(const float2& q, const float2& x, unsigned step, float (&sums)[4]) {
    sums[2 * (step % 2)] = fmaf(q.x, x.x, sums[2 * (step % 2)]);
    sums[2 * (step % 2) + 1] = fmaf(q.y, x.y, sums[2 * (step % 2) + 1]);
}
__device__ void multiply_add(float q, float x, unsigned step, float (&sums)[4]) {
    sums[step % 4] = fmaf(q, x, sums[step % 4]);
}

/// The sum over the eight threads of a row, in all of them: each step adds the same two numbers in
/// both partners.
__device__ float sum_of_row(const float (&sums)[4]) {
    float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int offset = kThreadsARow / 2; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(kWholeWarp, sum, offset);
    return sum;
}

/// Dot products of kRows · kWarpRows rows with the query: the warp's rows first + r · kWarpRows +
/// group. Rows from `rows` on are read as the last one.
///
/// Known count: kLoads = loads of a thread a row, exactly; the last one not for every thread.
template <unsigned kWidth, unsigned kLoads, unsigned kRows>
class Dots {
    using Load = typename LoadOf<kWidth>::Type;

  public:
    __device__ Dots(const Arguments& arguments, unsigned part)
        : part_(part), has_last_(part + kThreadsARow * (kLoads - 1) < arguments.dim / kWidth) {
        const Load* query = reinterpret_cast<const Load*>(arguments.query) + part;
#pragma unroll
        for (unsigned i = 0; i < kLoads; ++i)
            query_[i] = i + 1 < kLoads || has_last_ ? query[i * kThreadsARow] : Load();
    }

    __device__ void compute(const Arguments& arguments, std::size_t first_row,
                            float (&dots)[kRows]) const {
        Load row[kRows][kLoads];
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            const std::size_t at = min(first_row + r * kWarpRows, arguments.rows - 1);
            const Load* from =
                reinterpret_cast<const Load*>(arguments.vectors + at * arguments.dim) + part_;
#pragma unroll
            for (unsigned i = 0; i < kLoads; ++i) {
                row[r][i] = i + 1 < kLoads || has_last_ ? __ldg(from + i * kThreadsARow) : Load();
            }
        }
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            float sums[4] = {};
#pragma unroll
            for (unsigned i = 0; i < kLoads; ++i) multiply_add(query_[i], row[r][i], i, sums);
            dots[r] = sum_of_row(sums);
        }
    }

  private:
    unsigned part_;
    bool has_last_;
    Load query_[kLoads];
};

/// Any count: a loop, with the query in shared memory.
template <unsigned kWidth>
class Dots<kWidth, 0, 1> {
    using Load = typename LoadOf<kWidth>::Type;

  public:
    __device__ Dots(const Arguments& arguments, unsigned part) : part_(part) {
        extern __shared__ float4 query[];
        float* floats = reinterpret_cast<float*>(query);
        for (unsigned i = threadIdx.x; i < arguments.dim; i += kBlockThreads)
            floats[i] = arguments.query[i];
        __syncthreads();
        query_ = reinterpret_cast<const Load*>(query);
    }

    __device__ void compute(const Arguments& arguments, std::size_t first_row,
                            float (&dots)[1]) const {
        const std::size_t at = min(first_row, arguments.rows - 1);
        const Load* row = reinterpret_cast<const Load*>(arguments.vectors + at * arguments.dim);
        const unsigned loads = arguments.dim / kWidth;
        float sums[4] = {};
        unsigned i = part_;
        for (; i + (kTogether - 1) * kThreadsARow < loads; i += kTogether * kThreadsARow) {
            Load loaded[kTogether];
#pragma unroll
            for (unsigned j = 0; j < kTogether; ++j) loaded[j] = __ldg(row + i + j * kThreadsARow);
#pragma unroll
            for (unsigned j = 0; j < kTogether; ++j)
                multiply_add(query_[i + j * kThreadsARow], loaded[j], j, sums);
        }
        for (; i < loads; i += kThreadsARow) multiply_add(query_[i], __ldg(row + i), 0, sums);
        dots[0] = sum_of_row(sums);
    }

  private:
    static constexpr unsigned kTogether = 8;

    unsigned part_;
    const Load* query_;
};

/// Merges the lists of the block's warps into that of the first, which alone has a use for the
/// result. `shared` may be used again after the block's next barrier.
__device__ void merge_warps(WarpList& list, Entry (&shared)[kWarps][kWarpThreads], unsigned warp,
                            unsigned lane, unsigned wanted) {
    shared[warp][lane] = list.mine();
    __syncthreads();
    if (warp != 0) return;
    for (unsigned other = 1; other < kWarps; ++other)
        list.offer(lane < wanted, shared[other][lane]);
}

/// Two blocks a multiprocessor: 128 registers a thread, which the query and a row of ten loads fit
/// into.
template <unsigned kWidth, unsigned kLoads, unsigned kRows>
__global__ void __launch_bounds__(kBlockThreads, 2) search_rows(const Arguments arguments) {
    __shared__ Entry shared[kWarps][kWarpThreads];
    __shared__ bool is_last_block;
    const unsigned lane = threadIdx.x % kWarpThreads;
    const unsigned warp = threadIdx.x / kWarpThreads;
    const unsigned part = lane % kThreadsARow;
    const unsigned group = lane / kThreadsARow;
    const Dots<kWidth, kLoads, kRows> dots_of(arguments, part);

    WarpList list(lane, arguments.wanted);
    constexpr unsigned kStepRows = kWarpRows * kRows;
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kWarps * kStepRows;
    // The same for all threads of a warp, so that they leave the loop together.
    std::size_t first = (static_cast<std::size_t>(blockIdx.x) * kWarps + warp) * kStepRows;
    for (; first < arguments.rows; first += stride) {
        const std::size_t first_row = first + group;
        float norms[kRows];
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            norms[r] = __ldg(arguments.norms + min(first_row + r * kWarpRows, arguments.rows - 1));
        }
        float dots[kRows];
        dots_of.compute(arguments, first_row, dots);
        float best = Entry().score;
        float scores[kRows];
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            scores[r] = float_score(dots[r], arguments.query_norm, norms[r]);
            best = fmaxf(best, scores[r]);
        }
        // Rows come in ascending order, so that one of equal score never comes before a row in the
        // list. (A row that does not exist repeats the last one's score here, and is left out
        // below.)
        if (!__any_sync(kWholeWarp, best > list.last().score)) continue;
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            const std::size_t row = first_row + r * kWarpRows;
            list.offer(part == 0 && row < arguments.rows,
                       {scores[r], static_cast<std::uint32_t>(row)});
        }
    }

    merge_warps(list, shared, warp, lane, arguments.wanted);
    if (warp == 0) {
        if (lane < arguments.wanted) {
            arguments.block_lists[static_cast<std::size_t>(lane) * gridDim.x + blockIdx.x] =
                list.mine();
        }
        // The list must be seen by whoever sees this block counted.
        __threadfence();
        __syncwarp();
        if (lane == 0) is_last_block = atomicAdd(arguments.blocks_done, 1U) + 1 == gridDim.x;
    }
    __syncthreads();
    if (!is_last_block) return;
    __threadfence();

    WarpList all(lane, arguments.wanted);
    const unsigned entries = arguments.wanted * gridDim.x;
    for (unsigned begin = warp * kWarpThreads; begin < entries; begin += kBlockThreads) {
        const bool exists = begin + lane < entries;
        Entry entry;
        if (exists) {
            // Past the L1 cache, which does not follow what other multiprocessors write.
            const float2 bits =
                __ldcg(reinterpret_cast<const float2*>(arguments.block_lists + begin + lane));
            entry = {bits.x, __float_as_uint(bits.y)};
        }
        all.offer(exists, entry);
    }
    merge_warps(all, shared, warp, lane, arguments.wanted);
    if (warp == 0 && lane < arguments.wanted) arguments.best[lane] = all.mine();
    if (threadIdx.x == 0) *arguments.blocks_done = 0;
}

/// An instance of the kernel, and what it is for.
struct Variant {
    unsigned width = 0;  ///< floats a load
    unsigned loads = 0;  ///< of a thread a row; 0: any number
    unsigned rows = 0;   ///< of a group at once
    void (*kernel)(Arguments) = nullptr;
};

template <unsigned kWidth, unsigned kLoads, unsigned kRows>
constexpr Variant variant() {
    return {kWidth, kLoads, kRows, search_rows<kWidth, kLoads, kRows>};
}

/// For vectors of `dim` floats. The rows at once are chosen so that a thread has some 128 bytes on
/// their way.
Variant choose_variant(std::size_t dim) {
    static constexpr Variant kVariants[] = {
        variant<4, 10, 1>(),  // 300
        variant<4, 7, 1>(),   // 200
        variant<4, 4, 2>(),   // 100
        variant<2, 4, 4>(),   // 50
        variant<1, 4, 8>(),   // 25
        variant<4, 0, 1>(),  variant<2, 0, 1>(), variant<1, 0, 1>(),
    };
    const std::size_t width = dim % 4 == 0 ? 4 : dim % 2 == 0 ? 2 : 1;
    const std::size_t loads = (dim / width + kThreadsARow - 1) / kThreadsARow;
    return *std::find_if(std::begin(kVariants), std::end(kVariants), [&](const Variant& variant) {
        return variant.width == width && (variant.loads == loads || variant.loads == 0);
    });
}

class V5 final : public Rung {
  public:
    static Result<std::unique_ptr<Rung>> create(const RungParts& parts) {
        auto rung = std::unique_ptr<V5>(new V5(parts.resident));
        if (Status done = rung->prepare(); !done) return done.error();
        return std::unique_ptr<Rung>(std::move(rung));
    }

    const RungInfo& info() const override { return kV5; }

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
            // Product and selection are one.
            const auto ms = phases_.between(Phases::kDotBegins, Phases::kDotEnds);
            if (!ms) return ms.error();
            times->dot_product = *ms;
        }
        return hits;
    }

  private:
    explicit V5(std::shared_ptr<const ResidentModel> model)
        : model_(std::move(model)), variant_(choose_variant(model_->dim)) {}

    Status prepare() {
        if (Status done = cuda::use_device(model_->device); !done) return done.error();
        shared_bytes_ = variant_.loads == 0 ? model_->dim * sizeof(float) : 0;
        int processors = 0;
        if (Status done = cuda::check(
                cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, model_->device),
                "cudaDeviceGetAttribute");
            !done) {
            return done.error();
        }
        int resident_blocks = 0;
        if (Status done =
                cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                &resident_blocks, reinterpret_cast<const void*>(variant_.kernel),
                                kBlockThreads, shared_bytes_),
                            "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
            !done) {
            return done.error();
        }
        // As many as run at once, each of them to the end; no more than have rows.
        const std::size_t block_rows = std::size_t{kWarps} * kWarpRows * variant_.rows;
        blocks_ =
            std::clamp<std::size_t>((model_->rows + block_rows - 1) / block_rows, 1,
                                    static_cast<std::size_t>(processors) *
                                        static_cast<std::size_t>(std::max(resident_blocks, 1)));

        auto stream = cuda::Stream::create();
        if (!stream) return stream.error();
        auto phases = Phases::create();
        if (!phases) return phases.error();
        auto scaled = cuda::PinnedBuffer<float>::allocate(model_->dim);
        if (!scaled) return scaled.error();
        auto query = cuda::DeviceBuffer<float>::allocate(model_->dim);
        if (!query) return query.error();
        auto block_lists = cuda::DeviceBuffer<Entry>::allocate(blocks_ * kMaxLadderHits);
        if (!block_lists) return block_lists.error();
        auto blocks_done = cuda::DeviceBuffer<unsigned>::allocate(1);
        if (!blocks_done) return blocks_done.error();
        auto best = cuda::PinnedBuffer<Entry>::allocate(kMaxLadderHits);
        if (!best) return best.error();
        if (Status done = cuda::check(
                cudaMemsetAsync(blocks_done->data(), 0, blocks_done->bytes(), stream->get()),
                "cudaMemsetAsync");
            !done) {
            return done.error();
        }
        stream_ = *std::move(stream);
        phases_ = *std::move(phases);
        scaled_ = *std::move(scaled);
        query_ = *std::move(query);
        block_lists_ = *std::move(block_lists);
        blocks_done_ = *std::move(blocks_done);
        best_ = *std::move(best);
        return stream_.synchronize();
    }

    Status enqueue(const QueryVector& query, std::size_t wanted, bool timed) {
        if (Status done = cuda::use_device(model_->device); !done) return done.error();
        phases_.begin(timed);
        // So that an answer that is never written shows.
        std::fill_n(best_.data(), wanted, Entry());
        Arguments arguments;
        arguments.vectors = model_->vectors.data();
        arguments.norms = model_->norms.data();
        arguments.query = query_.data();
        arguments.block_lists = block_lists_.data();
        arguments.blocks_done = blocks_done_.data();
        arguments.best = best_.data();
        arguments.rows = model_->rows;
        arguments.dim = static_cast<unsigned>(model_->dim);
        arguments.wanted = static_cast<unsigned>(wanted);
        arguments.query_norm = scale_query(query, scaled_.span());

        if (Status done =
                cuda::copy_async<float>(query_.data(), scaled_.data(), model_->dim, stream_);
            !done) {
            return done.error();
        }
        if (Status done = phases_.mark(Phases::kDotBegins, stream_); !done) return done.error();
        if (Status done =
                launch("search_rows", variant_.kernel, blocks_, shared_bytes_, stream_, arguments);
            !done) {
            return done.error();
        }
        return phases_.mark(Phases::kDotEnds, stream_);
    }

    std::shared_ptr<const ResidentModel> model_;
    Variant variant_;
    std::size_t shared_bytes_ = 0;
    std::size_t blocks_ = 0;
    cuda::Stream stream_;
    Phases phases_;
    cuda::PinnedBuffer<float> scaled_;          // (dim)
    cuda::DeviceBuffer<float> query_;           // (dim)
    cuda::DeviceBuffer<Entry> block_lists_;     // (kMaxLadderHits, blocks)
    cuda::DeviceBuffer<unsigned> blocks_done_;  // (1), 0 between searches
    cuda::PinnedBuffer<Entry> best_;            // (kMaxLadderHits)
};

}  // namespace

constinit const RungInfo kV5 = {"v5",
                                "One kernel reads the model once by 16-byte loads and keeps the "
                                "best rows as it goes; no score is ever written.",
                                "The memory's read bandwidth.",
                                false,
                                true,
                                ladder_score_bound};

Result<std::unique_ptr<Rung>> make_v5(const RungParts& parts) { return V5::create(parts); }

}  // namespace gloved::kernels::ladder
