// The buffers of a shard in one table. The memory that it needs, what it allocates and what it has
// in use follow from it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {

/// What a device holds of its rows beside norms and ranks: vectors, a plane or both.
struct Residency {
    bool vectors = true;  ///< false: kernels read them from page-locked host memory, row by row
    bool plane = false;
    /// Int8 codes beside the plane, stored where the vectors are. They rule out most of the rows
    /// that the plane lets through: for many queries, and for one where vectors are on the host.
    bool int8_codes = false;
    std::uint32_t max_batch = kMaxPlanePass;  ///< queries of a pass over the plane, at most
};

/// Byte offsets of what is copied to the device for a pass, from the start of the input buffer.
struct InputLayout {
    std::size_t raw = 0;
    std::size_t unit = 0;
    std::size_t digits = 0;
    std::size_t excluded = 0;
    std::size_t end = 0;

    InputLayout(std::size_t raws, std::size_t units, std::size_t digit_bytes, std::size_t stride,
                std::size_t excluded_rows);
};

/// Shapes of a shard's buffers. A size is 0 where the residency has no use for it.
struct ShardSizes {
    /// `uncovered`: rows whose norm the bounds do not cover.
    ShardSizes(std::size_t rows, std::size_t dim, std::size_t uncovered, const DeviceShape& shape,
               const Residency& residency);

    Residency residency;
    std::size_t rows = 0;
    std::size_t uncovered = 0;
    planes::PlaneShape plane;
    std::size_t stride = 0;        ///< floats of a vector
    std::size_t groups = 0;        ///< of kGroupRows rows
    std::size_t float16_pass = 0;  ///< queries of a pass in float16
    std::size_t pass = 0;          ///< queries of a pass over vectors, and vectors of a score
    std::size_t plane_pass = 0;    ///< queries of a pass over the plane
    std::size_t digit_stride = 0;  ///< one-byte digits of a query
    std::size_t int8_stride = 0;   ///< bytes of a row's int8 codes
    std::size_t keys = 0;          ///< sampled groups of the plane
    std::size_t excluded = 0;      ///< excluded rows of a pass
    std::size_t input = 0;         ///< bytes
};

/// All memory of a shard. What the members hold is said where kernels see them (launches.hpp).
struct ShardBuffers {
    DeviceBuffer<float> vectors;
    DeviceBuffer<double> norms;
    DeviceBuffer<float> inverse_norms;
    DeviceBuffer<std::uint32_t> ranks;
    DeviceBuffer<std::uint32_t> uncovered;
    DeviceBuffer<std::byte> plane;
    DeviceBuffer<std::int8_t> int8_codes;
    PinnedBuffer<std::int8_t> host_int8_codes;

    DeviceBuffer<float> maxima;
    DeviceBuffer<double> floors;
    DeviceBuffer<float> warp_maxima;
    DeviceBuffer<std::uint32_t> counters;
    DeviceBuffer<Found> found;
    DeviceBuffer<double> scores;
    DeviceBuffer<double> denominators;
    DeviceBuffer<float> uppers;
    DeviceBuffer<std::uint32_t> warp_rows;
    DeviceBuffer<std::int8_t> plane_digits;
    DeviceBuffer<planes::DigitFacts> plane_facts;
    DeviceBuffer<std::int8_t> int8_digits;
    DeviceBuffer<planes::DigitFacts> int8_facts;
    DeviceBuffer<planes::PlaneCutoff> plane_cutoffs;
    DeviceBuffer<double> plane_floors;
    DeviceBuffer<float> plane_keys;
    DeviceBuffer<std::uint32_t> plane_survivors;
    DeviceBuffer<PlaneCounters> plane_counters;
    DeviceBuffer<std::byte> input;

    PinnedBuffer<std::byte> input_staging;
    PinnedBuffer<DeviceAnswer> answers;
    PinnedBuffer<Found> hits;
    PinnedBuffer<double> host_scores;
};

/// Bytes of device memory that buffers of these sizes take.
std::size_t device_bytes(const ShardSizes& sizes);

/// Allocates every buffer on the current device. Errors: device.
Result<ShardBuffers> allocate_buffers(const ShardSizes& sizes);

/// The pointers to the buffers that kernels read and write beside the model's.
Workspace workspace_of(const ShardBuffers& buffers);

}  // namespace gloved::kernels::cuda
