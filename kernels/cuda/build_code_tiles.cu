// Builds code tiles (code_tiles.hpp), once after the vectors are uploaded: sorts the rows by their
// projections, and writes the codes of each row to its place. Also sorts rows by their ranks.
#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/encode_int8.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
/// Warps of a block that fills tiles: each takes a row of the same core matrices.
constexpr unsigned kFillRows = kCoreBytes / kCoreWidth;
static_assert(kFillRows == kWarps && kCodeTileRows % kFillRows == 0);

/// The order of a row: the bits of its projection, which is not negative. Uncovered rows come last.
constexpr std::uint32_t kUncoveredKey = ~std::uint32_t{0};
constexpr std::size_t kAlignment = 256;

/// Offsets in the scratch memory: keys and rows before and after sorting, then CUB's own data.
struct Scratch {
    std::size_t keys[2];
    std::size_t rows[2];
    std::size_t sort;  ///< CUB's data

    explicit Scratch(std::uint32_t count) {
        const std::size_t array =
            (count * sizeof(std::uint32_t) + kAlignment - 1) / kAlignment * kAlignment;
        for (unsigned i = 0; i < 2; ++i) {
            keys[i] = i * array;
            rows[i] = (2 + i) * array;
        }
        sort = 4 * array;
    }
};

using Numbers = cub::DoubleBuffer<std::uint32_t>;

/// With `data` nullptr, sets `bytes` to what sorting needs.
cudaError_t sort_by_keys(void* data, std::size_t& bytes, Numbers& keys, Numbers& rows,
                         std::uint32_t count, cudaStream_t stream) {
    constexpr int kKeyBits = 32;
    return cub::DeviceRadixSort::SortPairs(data, bytes, keys, rows, count, 0, kKeyBits, stream);
}

/// Writes the key and the number of every row. One warp a row at a time.
__global__ __launch_bounds__(kThreads) void write_keys(DeviceModel model, std::uint32_t* keys,
                                                       std::uint32_t* rows) {
    const unsigned lane = threadIdx.x % kWarp;
    for (std::uint32_t row = blockIdx.x * kWarps + threadIdx.x / kWarp; row < model.rows;
         row += gridDim.x * kWarps) {
        const bool covered = bound_covers(model.norms[row]);
        const Int8Bounds bounds = encode_int8(model, row, lane, model.dim, [](unsigned, int) {});
        if (lane > 0) continue;
        keys[row] =
            covered ? static_cast<std::uint32_t>(__float_as_int(bounds.projection)) : kUncoveredKey;
        rows[row] = row;
    }
}

__global__ __launch_bounds__(kThreads) void number_rows(std::uint32_t count, std::uint32_t* rows) {
    for (std::uint32_t row = blockIdx.x * kThreads + threadIdx.x; row < count;
         row += gridDim.x * kThreads)
        rows[row] = row;
}

/// Writes codes, bounds and rows of kFillRows places, and zeros beyond the last place. One warp a
/// place.
__global__ __launch_bounds__(kThreads) void fill_tiles(DeviceModel model,
                                                       const std::uint32_t* sorted) {
    extern __shared__ __align__(16) std::int8_t codes[];  // (kFillRows, width)
    const DeviceCodeTiles& tiles = model.code_tiles;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const std::uint32_t first = blockIdx.x * kFillRows;
    const std::uint32_t place = first + warp;
    std::int8_t* const own = codes + warp * tiles.width;
    if (place < tiles.places) {
        const std::uint32_t row = sorted[place];
        const Int8Bounds bounds =
            encode_int8(model, row, lane, tiles.width,
                        [&](unsigned i, int code) { own[i] = static_cast<std::int8_t>(code); });
        if (lane == 0) {
            tiles.rows[place] = row;
            tiles.places_of[row] = place;
            tiles.bounds[place] = bounds;
        }
    } else {
        for (unsigned i = lane; i < tiles.width; i += kWarp) own[i] = 0;
    }
    __syncthreads();
    std::int8_t* const tile =
        tiles.codes + static_cast<std::size_t>(first / kCodeTileRows) * kCodeTileRows * tiles.width;
    const std::uint32_t cores = tiles.width / kCoreWidth;
    for (std::uint32_t i = threadIdx.x; i < cores * kFillRows; i += kThreads) {
        const std::uint32_t row = i % kFillRows;
        const std::uint32_t from = i / kFillRows * kCoreWidth;
        *reinterpret_cast<uint4*>(tile +
                                  code_offset(kCodeTileRows, first % kCodeTileRows + row, from)) =
            *reinterpret_cast<const uint4*>(codes + row * tiles.width + from);
    }
}

/// Writes the range of every tile's bounds. One warp a tile.
__global__ __launch_bounds__(kThreads) void find_ranges(DeviceCodeTiles tiles) {
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t tile = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (tile >= tiles.tiles) return;
    float min_projection = -minus_infinity();
    float max_projection = 0;
    float max_residual = 0;
    for (std::uint32_t i = lane; i < kCodeTileRows; i += kWarp) {
        const std::uint32_t place = tile * kCodeTileRows + i;
        if (place >= tiles.places) break;
        const Int8Bounds bounds = tiles.bounds[place];
        min_projection = fminf(min_projection, bounds.projection);
        max_projection = fmaxf(max_projection, bounds.projection);
        max_residual = fmaxf(max_residual, bounds.residual);
    }
    min_projection = -warp_max(-min_projection);
    max_projection = warp_max(max_projection);
    max_residual = warp_max(max_residual);
    if (lane == 0) tiles.ranges[tile] = {min_projection, max_projection, max_residual};
}

}  // namespace

cudaError_t load_build_code_tiles_kernels() {
    return load_each(write_keys, number_rows, fill_tiles, find_ranges);
}

cudaError_t code_tiles_scratch_bytes(std::uint32_t rows, std::size_t& bytes) {
    Numbers keys;
    Numbers sorted;
    std::size_t sort_bytes = 0;
    const cudaError_t error = sort_by_keys(nullptr, sort_bytes, keys, sorted, rows, nullptr);
    bytes = Scratch(rows).sort + sort_bytes;
    return error;
}

cudaError_t launch_sort_by_rank(const DeviceModel& model, std::byte* scratch,
                                std::size_t scratch_bytes, std::uint32_t* rows,
                                cudaStream_t stream) {
    const Scratch in(model.rows);
    auto* const keys = reinterpret_cast<std::uint32_t*>(scratch + in.keys[0]);
    const auto copied = cudaMemcpyAsync(keys, model.ranks, model.rows * sizeof(std::uint32_t),
                                        cudaMemcpyDeviceToDevice, stream);
    if (copied != cudaSuccess) return copied;
    const unsigned blocks =
        blocks_of_rounds(min((model.rows + kThreads - 1) / kThreads, 1U << 12), kThreads);
    number_rows<<<blocks, kThreads, 0, stream>>>(model.rows, rows);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    Numbers sorted_keys(keys, reinterpret_cast<std::uint32_t*>(scratch + in.keys[1]));
    Numbers sorted(rows, reinterpret_cast<std::uint32_t*>(scratch + in.rows[0]));
    std::size_t sort_bytes = scratch_bytes - in.sort;
    const auto error =
        sort_by_keys(scratch + in.sort, sort_bytes, sorted_keys, sorted, model.rows, stream);
    if (error != cudaSuccess || sorted.Current() == rows) return error;
    return cudaMemcpyAsync(rows, sorted.Current(), model.rows * sizeof(std::uint32_t),
                           cudaMemcpyDeviceToDevice, stream);
}

cudaError_t launch_build_code_tiles(const DeviceModel& model, std::byte* scratch,
                                    std::size_t scratch_bytes, cudaStream_t stream) {
    const DeviceCodeTiles& tiles = model.code_tiles;
    static_assert(kNoPlace == 0xFFFFFFFF);
    const auto cleared =
        cudaMemsetAsync(tiles.places_of, 0xFF, model.rows * sizeof(std::uint32_t), stream);
    if (cleared != cudaSuccess || tiles.places == 0) return cleared;
    const Scratch in(model.rows);
    const auto array = [&](std::size_t offset) {
        return reinterpret_cast<std::uint32_t*>(scratch + offset);
    };
    Numbers keys(array(in.keys[0]), array(in.keys[1]));
    Numbers rows(array(in.rows[0]), array(in.rows[1]));
    const unsigned blocks =
        blocks_of_rounds(min((model.rows + kWarps - 1) / kWarps, 1U << 16), kWarps);
    write_keys<<<blocks, kThreads, 0, stream>>>(model, keys.Current(), rows.Current());
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    std::size_t sort_bytes = scratch_bytes - in.sort;
    if (const auto error =
            sort_by_keys(scratch + in.sort, sort_bytes, keys, rows, model.rows, stream);
        error != cudaSuccess) {
        return error;
    }
    const unsigned fill_blocks = tiles.tiles * (kCodeTileRows / kFillRows);
    fill_tiles<<<fill_blocks, kThreads, kFillRows * tiles.width, stream>>>(model, rows.Current());
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    find_ranges<<<(tiles.tiles + kWarps - 1) / kWarps, kThreads, 0, stream>>>(tiles);
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
