// What the parts of plane_pass share: its sizes, the memory of a block, and how warps wait.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_grid.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda::plane_batch {

constexpr unsigned kThreads = 512;
constexpr unsigned kWarps = kThreads / kWarp;
/// The last warps of a block find floors while the others scan.
constexpr unsigned kScoutWarps = 4;
constexpr unsigned kScanWarps = kWarps - kScoutWarps;
constexpr unsigned kScoutThreads = kScoutWarps * kWarp;
/// Most floors of a launch.
constexpr unsigned kMaxFloors = 3;
/// Most units of a warp whose sums are kept until there is a floor.
constexpr std::uint32_t kMaxDeferred = 12;
constexpr std::uint32_t kCodeMask = 0x0F0F0F0FU;
/// Loads of 16 bytes in a step of the plane: four rows each.
constexpr unsigned kQuads = 4;
constexpr unsigned kRowsOfThread = kUnitRows / (kWarp / kQuads);
/// What an instruction multiplies: steps of the plane, and queries.
constexpr unsigned kStepsOfProduct = 4;

/// How many queries a launch is compiled for. An instruction multiplies with eight columns of
/// digits: one-byte digits of eight queries, or two-byte digits of four, whose high bytes are a
/// column and whose low bytes are the next.
template <unsigned kTiles_, unsigned kBytes_>
struct Width {
    static constexpr unsigned kTiles = kTiles_;  ///< times that each code is multiplied
    static constexpr unsigned kBytes = kBytes_;  ///< of a digit
    /// Loads of a chunk: a warp multiplies one chunk while the next is under way.
    static constexpr unsigned kLoads = kBytes == 2 ? 5 : kTiles == 2 ? 3 : 2;
    static constexpr unsigned kOfTile = 8 / kBytes;
    static constexpr unsigned kQueries = kTiles * kOfTile;
    /// Queries of a thread, which has both bytes of a digit.
    static constexpr unsigned kOfThread = kQueries / kStepsOfProduct;

    /// The thread's i-th query.
    static __device__ unsigned query(unsigned i) {
        constexpr unsigned kColumns = 2 / kBytes;
        const unsigned part = threadIdx.x % kStepsOfProduct;
        return i / kColumns * kOfTile + part * kColumns + i % kColumns;
    }
};

using UpTo4 = Width<1, 2>;
using UpTo8 = Width<2, 2>;
using UpTo16 = Width<2, 1>;
using UpTo32 = Width<4, 1>;
static_assert(UpTo32::kQueries == kMaxPlanePass);

/// Units of a warp in the sample: more where queries ask for more hits.
constexpr std::uint32_t kMinSampleRounds = 2;
constexpr std::uint32_t kHitsOfSampleRound = 12;
constexpr std::uint32_t kMaxSampleRounds = 8;
/// Where the sample is more than one unit in so many, its floor is good enough for the whole scan.
constexpr std::uint32_t kMinSpread = 8;
/// Rows of a query whose canonical scores make a threshold: more than k and the excluded rows,
/// since estimates may order them otherwise.
constexpr std::uint32_t kMinCandidates = 64;
constexpr std::uint32_t kCandidatesPerHit = 2;
constexpr std::uint32_t kMinOfBlock = 2;
/// A warp holds so many candidates' scores of a query in each thread.
constexpr unsigned kScoresOfThread = 12;
/// Candidates' scores of a query that there is room for, for each floor. A block may write those of
/// the next while another still reads these: each floor has places of its own.
constexpr std::uint32_t kFloorCandidates = kMaxCandidates / kMaxFloors;
static_assert(kScoresOfThread * kWarp <= kFloorCandidates);
/// Stands for no row.
constexpr std::uint32_t kNone = ~std::uint32_t{0};
/// A listed sum has so many bits, and the query the others.
constexpr unsigned kSumBits = 27;
constexpr std::uint32_t kSumMask = (1U << kSumBits) - 1;
static_assert(kMaxPlanePass <= 1U << (32 - kSumBits));
/// A deferred sum has so many.
constexpr unsigned kDeferredBits = 16;

/// How a launch divides its work and a block's dynamic shared memory.
struct PassShape {
    std::uint32_t blocks = 0;
    std::uint32_t copies = 0;                    ///< loads of a unit: its codes, then its bounds
    std::uint32_t tiles = 0;                     ///< Width::kTiles
    std::uint32_t digit_bytes = 0;               ///< Width::kBytes
    std::uint32_t of_thread = 0;                 ///< Width::kOfThread
    std::uint32_t candidates = 0;                ///< of each block, for each query
    std::uint32_t spread = 0;                    ///< one unit in so many is in the sample
    std::uint32_t floors = 0;                    ///< how many are found
    std::uint32_t floor_after[kMaxFloors] = {};  ///< units of a warp; the first: its sample
    std::uint32_t list_bytes = 0;                ///< of a warp's list and deferred units
    std::uint32_t deferrable = 0;                ///< units that a warp has room to defer
    std::uint32_t listed_shift = 0;              ///< bits that listed sums lose
    std::uint32_t deferred_shift = 0;            ///< bits that deferred sums lose
    std::uint32_t int8_stride = 0;               ///< bytes of a row's int8 codes; 0: there are none
    /// Of queries' vectors in a block's shared memory, a multiple of 16; 0: they are not there.
    std::uint32_t vector_bytes = 0;
    std::size_t shared_bytes = 0;
};

/// Bytes of a deferred unit, whose sums a warp keeps until there is a floor: bounds, and the sums
/// of a thread's queries.
constexpr __host__ __device__ std::uint32_t deferred_bytes(std::uint32_t of_thread) {
    return kWarp / kStepsOfProduct * static_cast<std::uint32_t>(sizeof(uint4)) +
           of_thread * kWarp * static_cast<std::uint32_t>(sizeof(uint2));
}

/// Limits of queries that are passed as a parameter, which saves a copy to the device.
constexpr std::uint32_t kInlineFloats = 1200;
constexpr std::uint32_t kInlineExcluded = 64;
/// Most bytes of queries' vectors that blocks keep in shared memory.
constexpr std::size_t kSharedVectorBytes = std::size_t{80} << 10;

/// The queries as a parameter; where not `usable`, they are on the device.
struct InlineQueries {
    DeviceQuery queries[kMaxPlanePass];
    std::uint32_t excluded[kInlineExcluded];
    float raw[kInlineFloats];
    std::uint32_t excluded_count = 0;
    bool usable = false;
};

/// A row that reached a query's cutoff.
struct Listed {
    std::uint32_t row;
    std::uint32_t sum_and_query;
    std::uint32_t bounds;  ///< projection, and residual from bit 16 on

    __device__ unsigned query() const { return sum_and_query >> kSumBits; }
    __device__ int sum() const {
        return static_cast<int>(sum_and_query << (32 - kSumBits)) >> (32 - kSumBits);
    }
    __device__ float projection() const { return static_cast<float>(bounds & 0xFFFFU); }
    __device__ float residual() const { return static_cast<float>(bounds >> 16U); }
};

/// The best estimate of a query and its row, so that a comparison of integers orders them; 0 for
/// none.
using Best = unsigned long long;

__device__ inline Best make_best(float estimate, std::uint32_t row) {
    return static_cast<Best>(ordered(estimate)) << 32U | row;
}

/// A barrier in shared memory that completes once, when so many threads have arrived. Who waits
/// sees what they wrote before.
class Signal {
  public:
    __device__ void init(unsigned arrivals) {
#if __CUDA_ARCH__ >= 800
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals)
                     : "memory");
#endif
    }
    __device__ void arrive() {
#if __CUDA_ARCH__ >= 800
        asm volatile(
            "{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(address())
            : "memory");
#endif
    }
    __device__ bool is_complete() const {
        std::uint32_t complete = 0;
#if __CUDA_ARCH__ >= 800
        asm volatile(
            "{\n.reg .pred over;\nmbarrier.test_wait.parity.shared.b64 over, [%1], 0;\n"
            "selp.u32 %0, 1, 0, over;\n}"
            : "=r"(complete)
            : "r"(address())
            : "memory");
#endif
        return complete != 0;
    }
    __device__ void wait() const {
        while (!is_complete()) __nanosleep(kNanosecondsOfSleep);
    }

  private:
    static constexpr unsigned kNanosecondsOfSleep = 64;

    __device__ std::uint32_t address() const {
        return static_cast<std::uint32_t>(__cvta_generic_to_shared(&state_));
    }
    std::uint64_t state_;
};

/// The cutoffs of a floor, one of each query.
struct Cutoffs {
    float of_projection[kMaxPlanePass];
    float of_residual[kMaxPlanePass];
    float constant[kMaxPlanePass];
};

/// What the threads of a block share, besides digits and lists.
struct BlockMemory {
    Best best[kScanWarps][kMaxPlanePass];  // of what each warp has seen
    Signal told[kMaxFloors];               // the scan's threads: what a floor comes from is there
    Signal found[kMaxFloors];              // the scouts: a floor's cutoffs are there
    planes::DigitFacts facts[kMaxPlanePass];
    planes::DigitFacts int8_facts[kMaxPlanePass];  // of the digits for int8 codes
    Int8Cutoff int8_cutoffs[kMaxPlanePass];
    double floors[kMaxPlanePass];
    Cutoffs cutoffs[kMaxFloors];
    float centre[kMaxPlanePass];  // half of L Σ Q
    float reached[kMaxPlanePass];
    std::uint32_t candidates[kMaxPlanePass * kScanWarps];
    std::uint32_t told_listed[kMaxFloors][kScanWarps];
    std::uint32_t deferred_units[kScanWarps][kMaxDeferred];
    std::uint32_t listed[kScanWarps];
    std::uint32_t rescored[kMaxPlanePass];
    std::uint32_t ruled_out[kMaxPlanePass];
    std::uint32_t overflowed;  // a bit for each query
    std::uint32_t excluded[kInlineExcluded];
};

/// The queries of a launch as a block sees them.
struct BlockQueries {
    DeviceQuery* queries;           ///< (count) shared memory
    float* vectors;                 ///< (count, stride) shared memory; nullptr: in `raw`
    const float* raw;               ///< (count, stride)
    const std::uint32_t* excluded;  ///< excluded rows of all
    std::uint32_t count;
    std::uint32_t stride;
    bool filtered;  ///< whether any has rows that are not eligible

    __device__ const DeviceQuery& operator[](unsigned q) const { return queries[q]; }
};

/// What an estimate of a row's cosine is multiplied with.
__device__ inline float weight_of(float projection, float residual) {
    return __fdividef(projection, projection * projection + residual * residual);
}

/// An estimate of a row's cosine, but for a factor that is the same for all rows.
__device__ inline float estimate_of(int sum, float centre, float weight) {
    return (static_cast<float>(sum) - centre) * weight;
}

/// The 16-bit number at `index` of four.
__device__ inline std::uint32_t half_word(uint2 four, unsigned index) {
    return (index < 2 ? four.x : four.y) >> (16 * (index % 2)) & 0xFFFFU;
}

/// Loads 16 bytes that are read once: they take no room in the L1 cache, which is small beside so
/// much shared memory, and leave the L2 cache before the kernel's code does.
__device__ inline uint4 load_once(const uint4* address) {
#if __CUDA_ARCH__ >= 800
    unsigned long long evict_first;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(evict_first));
    uint4 value;
    asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
        : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
        : "l"(__cvta_generic_to_global(address)), "l"(evict_first));
    return value;
#else
    return __ldcs(address);
#endif
}

/// Components of a row that a team loads at a time, and of those how many it has room for.
constexpr unsigned kRowLoad = 320;
constexpr unsigned kRowRoom = kRowLoad / 2;
/// A team's room, apart from its neighbours' by an odd number of canonical lanes, so that their
/// loads from shared memory meet in no bank.
constexpr unsigned kRowStride = kRowRoom + kCanonicalLanes;
constexpr std::size_t kRowBytes = kWarp / kCanonicalLanes * kRowStride * sizeof(float);

/// What the threads of a block work with. Functions that are not inlined take it by value, so that
/// it stays in registers elsewhere.
struct Context {
    const DeviceModel& model;
    BlockQueries queries;
    const PassShape& shape;
    const Workspace& work;
    BlockMemory& shared;
    uint2* digits;             ///< (copies, tiles, kWarp)
    std::int8_t* int8_digits;  ///< (queries, 2, int8_stride)
    std::byte* lists;          ///< (kScanWarps, list_bytes), (kScoutWarps, kRowBytes)

    __device__ Listed* list_of(unsigned warp) const {
        return reinterpret_cast<Listed*>(lists + warp * shape.list_bytes);
    }
    /// Where the warp keeps its i-th deferred unit, behind its list: bounds, then the sums,
    /// (kOfThread, kWarp).
    __device__ uint4* deferred_at(std::uint32_t i) const {
        return reinterpret_cast<uint4*>(lists + (threadIdx.x / kWarp + 1) * shape.list_bytes -
                                        (i + 1) * deferred_bytes(shape.of_thread));
    }
    /// How many rows a warp's list has room for beside so many deferred units.
    __device__ std::uint32_t room_beside(std::uint32_t deferred) const {
        return (shape.list_bytes - deferred * deferred_bytes(shape.of_thread)) /
               static_cast<std::uint32_t>(sizeof(Listed));
    }
    /// Room for rows that the warp scores, behind its list; nullptr: the list leaves none.
    __device__ float* row_room() const {
        const unsigned warp = threadIdx.x / kWarp;
        if (warp >= kScanWarps) {
            return reinterpret_cast<float*>(lists + kScanWarps * shape.list_bytes +
                                            (warp - kScanWarps) * kRowBytes);
        }
        if (shared.listed[warp] * sizeof(Listed) + kRowBytes > shape.list_bytes) return nullptr;
        return reinterpret_cast<float*>(lists + (warp + 1) * shape.list_bytes - kRowBytes);
    }
};

}  // namespace gloved::kernels::cuda::plane_batch
