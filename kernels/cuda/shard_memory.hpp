// The memory of a shard, which is the part of a model's rows that one GPU answers for: what it
// holds, how much that is, and where each piece of it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

/// The numbers that determine the sizes of a shard's memory. A number is 0 if the residency does
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
    std::size_t units = 0;        ///< units of kUnitRows rows
    std::size_t uppers = 0;       ///< bounds of a query that blocks' shared memory does not hold
    std::size_t plane_pass = 0;   ///< maximum number of queries of a pass over the plane
    std::size_t code_pass = 0;    ///< of a pass over code tiles
    std::size_t places = 0;       ///< rows with a place in the code tiles
    std::size_t tiles = 0;        ///< number of code tiles
    std::size_t code_width = 0;   ///< bytes of a row's codes in a tile
    std::size_t code_lists = 0;   ///< number of lists of a pass over code tiles
    std::size_t int8_stride = 0;  ///< bytes of a row's int8 codes in host memory
    std::size_t counters = 0;     ///< number of Workspace::counters
    std::size_t inputs = 0;       ///< maximum number of queries, or of their vectors, of a pass
    std::size_t excluded = 0;     ///< of excluded rows
    std::size_t input = 0;        ///< bytes of the input buffer
};

/// Passes of many queries that may be under way at the same time: while one runs, the host prepares
/// the next, or takes the answers of the one before.
inline constexpr std::size_t kSlots = 2;

/// Takes pieces of memory, or counts what they would take. Frees all it has taken at its end.
class Arena {
  public:
    enum class Mode { counts, allocates };
    explicit Arena(Mode mode) : mode_(mode) {}

    /// Memory of the current device for `count` elements, not initialised, which begins where any
    /// type may; nullptr for none, if `wanted` is false, after an error, and for one that counts.
    template <class T>
    T* device(std::size_t count, bool wanted = true) {
        if (!wanted) return nullptr;
        device_bytes_ += count * sizeof(T);
        return reinterpret_cast<T*>(take(device_, count * sizeof(T)));
    }
    /// The same of page-locked host memory.
    template <class T>
    T* pinned(std::size_t count, bool wanted = true) {
        return wanted ? reinterpret_cast<T*>(take(pinned_, count * sizeof(T))) : nullptr;
    }

    std::size_t device_bytes() const { return device_bytes_; }
    /// The first error, `device`.
    const Status& status() const { return status_; }

  private:
    template <class Buffer>
    std::byte* take(std::vector<Buffer>& pieces, std::size_t bytes) {
        if (mode_ == Mode::counts || !status_) return nullptr;
        // A piece of its own for each, so that tools find who writes beyond one.
        auto made = Buffer::allocate(bytes);
        if (!made) {
            status_ = made.error();
            return nullptr;
        }
        return pieces.emplace_back(*std::move(made)).data();
    }

    Mode mode_;
    Status status_;
    std::size_t device_bytes_ = 0;
    std::vector<DeviceBuffer<std::byte>> device_;
    std::vector<PinnedBuffer<std::byte>> pinned_;
};

/// Where the pieces of a shard's memory are. launches.hpp says what each holds, in the structs
/// through which kernels see them.
struct ShardMemory {
    DeviceModel model;
    Workspace work;  ///< with the answers and hits of the first slot
    // What of the model the host fills:
    float* vectors = nullptr;       ///< model.vectors, unless they are on the host
    std::uint8_t* plane = nullptr;  ///< model.plane.bytes
    double* host_scores = nullptr;  ///< (rows) page-locked

    /// What a pass and the host send each other. Passes of plane_pass, code_pass and few_rows use
    /// one slot and then the other; all others the first.
    struct Slot {
        std::byte* input = nullptr;          ///< device
        std::byte* input_staging = nullptr;  ///< page-locked, as what follows
        DeviceAnswer* answers = nullptr;
        Found* hits = nullptr;
    };
    std::array<Slot, kSlots> slots;
};

/// Takes every piece from the arena: the one list of what a shard holds. With arena.status(), some
/// are missing.
ShardMemory lay_out(Arena& arena, const ShardSizes& sizes);

/// Bytes of device memory that lay_out takes for these sizes.
std::size_t device_bytes(const ShardSizes& sizes);

}  // namespace gloved::kernels::cuda
