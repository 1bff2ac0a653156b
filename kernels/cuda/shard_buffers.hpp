// The buffers of a shard, which is the part of a model's rows that one GPU answers for: their
// sizes, which also tell how much memory a shard needs, and their allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/result.hpp"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {

/// What a device holds of a shard's rows besides norms and ranks: vectors, a plane or code tiles.
struct Residency {
    bool vectors = true;  ///< false: kernels read them from page-locked host memory, row by row
    bool plane = false;
    /// Without vectors: int8 codes besides the plane, in page-locked host memory. They rule out
    /// most rows that the plane does not rule out.
    bool int8_codes = false;
    /// The same codes in tiles for tensor cores, on the device.
    bool code_tiles = false;
    bool lists = false;  ///< which lists each row is in, and the rows of short ones
};

/// Offsets in bytes, in the input buffer, of the arrays of DeviceQueries, which are copied to the
/// device for a pass. The DeviceQuery array is at 0.
struct InputLayout {
    std::size_t excluded = 0;
    std::size_t digits = 0;
    std::size_t raw = 0;  ///< vectors come last: those of rows are not copied
    std::size_t end = 0;  ///< size of the input

    /// For so many queries, each with a vector of `stride` floats.
    InputLayout(std::size_t queries, std::size_t digit_bytes, std::size_t stride,
                std::size_t excluded_rows);
};

/// The numbers that determine the sizes of a shard's buffers. A number is 0 if the residency does
/// not need it.
struct ShardSizes {
    /// `uncovered`: number of rows whose norm the bounds do not cover.
    ShardSizes(std::size_t rows, std::size_t dim, std::size_t uncovered, const DeviceShape& shape,
               const Residency& residency);

    Residency residency;
    std::size_t rows = 0;
    std::size_t uncovered = 0;
    planes::PlaneShape plane;
    std::size_t stride = 0;       ///< floats of a vector, with padding
    std::size_t groups = 0;       ///< groups of kGroupRows rows
    std::size_t uppers = 0;       ///< bounds of a query that blocks' shared memory does not hold
    std::size_t plane_pass = 0;   ///< maximum number of queries of a pass over the plane
    std::size_t code_pass = 0;    ///< of a pass over code tiles
    std::size_t places = 0;       ///< rows with a place in the code tiles
    std::size_t tiles = 0;        ///< number of code tiles
    std::size_t code_width = 0;   ///< bytes of a row's codes in a tile
    std::size_t code_lists = 0;   ///< number of lists of a pass over code tiles
    std::size_t int8_stride = 0;  ///< bytes of a row's int8 codes in host memory
    std::size_t inputs = 0;       ///< maximum number of queries, or of their vectors, of a pass
    std::size_t excluded = 0;     ///< of excluded rows
    std::size_t input = 0;        ///< bytes of the input buffer
};

/// Passes over code tiles that may be under way at the same time: while one runs, the host prepares
/// the next, or takes the answers of the one before.
inline constexpr std::size_t kSlots = 2;

/// All memory of a shard. launches.hpp says what each buffer holds, in the structs through which
/// kernels see them: DeviceModel, Workspace, PlaneWorkspace and CodeWorkspace.
struct ShardBuffers {
    DeviceBuffer<float> vectors;
    DeviceBuffer<double> norms;
    DeviceBuffer<std::uint32_t> ranks;
    DeviceBuffer<std::uint32_t> uncovered;
    DeviceBuffer<std::byte> plane;
    PinnedBuffer<std::int8_t> host_int8_codes;
    DeviceBuffer<std::int8_t> tile_codes;
    DeviceBuffer<Int8Range> tile_ranges;
    DeviceBuffer<Int8Bounds> tile_bounds;
    DeviceBuffer<std::uint32_t> tile_rows;
    DeviceBuffer<std::uint32_t> tile_places;
    DeviceBuffer<std::uint32_t> rows_by_rank;
    DeviceBuffer<ListMask> memberships;
    DeviceBuffer<std::uint32_t> list_rows;

    DeviceBuffer<float> maxima;
    DeviceBuffer<double> floors;
    DeviceBuffer<std::uint32_t> counters;
    DeviceBuffer<Found> found;
    DeviceBuffer<double> scores;
    DeviceBuffer<double> divisors;
    DeviceBuffer<float> candidate_scores;
    DeviceBuffer<float> uppers;
    DeviceBuffer<std::int8_t> code_digits;
    DeviceBuffer<planes::DigitFacts> code_facts;
    DeviceBuffer<double> code_floors;
    DeviceBuffer<Int8SumCutoff> code_cutoffs;
    DeviceBuffer<float> code_keys;
    DeviceBuffer<CodeHit> code_kept;
    DeviceBuffer<std::uint32_t> code_kept_counts;
    DeviceBuffer<std::uint32_t> code_marks;
    DeviceBuffer<std::uint32_t> code_counts;
    DeviceBuffer<CodeHit> code_hits;
    DeviceBuffer<Found> few_best;
    DeviceBuffer<std::uint32_t> few_counts;
    DeviceBuffer<std::uint32_t> few_done;
    PinnedBuffer<double> host_scores;

    /// What a pass and the host send each other. Passes over code tiles use one slot and then the
    /// other; all others the first.
    struct Slot {
        DeviceBuffer<std::byte> input;
        PinnedBuffer<std::byte> input_staging;
        PinnedBuffer<DeviceAnswer> answers;
        PinnedBuffer<Found> hits;
    };
    std::array<Slot, kSlots> slots;
};

/// Bytes of device memory that allocate_buffers needs for these sizes.
std::size_t device_bytes(const ShardSizes& sizes);

/// Allocates every buffer on the current device. Error: device.
Result<ShardBuffers> allocate_buffers(const ShardSizes& sizes);

/// The Workspace that points to these buffers, with the answers and hits of the first slot.
Workspace workspace_of(const ShardBuffers& buffers);

}  // namespace gloved::kernels::cuda
