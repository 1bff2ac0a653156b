#include "kernels/cuda/upload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/elapsed.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// Bytes of a piece: large enough that calls take no time beside the copy, small enough that
/// locking the next piece overlaps with it.
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kProgressPause{1};

bool is_padded(std::size_t dim) { return dim % kStrideFloats != 0; }

/// Rows of a piece: whole pages and whole rows, so that no copy reads from two locked pieces.
std::size_t rows_of_piece(std::size_t dim) {
    const std::size_t row_bytes = dim * sizeof(float);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t least_bytes = std::max(std::lcm(row_bytes, page), page);
    return std::max<std::size_t>(kPieceBytes / least_bytes, 1) *
           (least_bytes / std::max(row_bytes, sizeof(float)));
}

/// Rows of a piece as the file has them, for models whose rows are padded on the device. A shard's
/// copies and kernels follow each other on its stream, so one buffer is enough.
using Packed = DeviceBuffer<float>;

Status start_copy(const format::Model& model, const Shard& shard, RowRange rows, Packed& packed) {
    if (Status used = use_device(shard.device()); !used) return used;
    const std::size_t dim = model.dim();
    const float* const from = model.vectors().data() + rows.first * dim;
    if (!is_padded(dim))
        return copy_async(shard.vector_at(rows.first), from, rows.size() * dim, shard.stream());
    if (packed.size() < rows.size() * dim) {
        if (Status made = move_into(packed, Packed::allocate(rows.size() * dim)); !made)
            return made;
    }
    if (Status done = copy_async(packed.data(), from, rows.size() * dim, shard.stream()); !done)
        return done;
    return check(launch_pad_rows(packed.data(), static_cast<std::uint32_t>(rows.size()),
                                 static_cast<std::uint32_t>(dim), shard.stride(),
                                 shard.vector_at(rows.first), shard.stream().get()),
                 "launch of pad_rows");
}

using Log = std::function<void(const std::string&)>;

/// Page-locks pieces of the vectors, until one is refused.
class PieceLocks {
  public:
    PieceLocks(bool pin, std::span<const std::byte> vectors, const Log& log)
        : log_(log), pins_(pin) {
        // Pieces are whole pages only if the vectors begin on a page. Pages larger than 4 KiB may
        // begin before them.
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        if (pin && reinterpret_cast<std::uintptr_t>(vectors.data()) % page != 0)
            give_up("the vectors do not begin on a page boundary");
    }
    void lock(std::span<const std::byte> piece) {
        if (!pins_) return;
        const auto begun = Clock::now();
        auto registration = Registration::create(piece);
        ms_ += ms_since(begun);
        if (registration) {
            held_.push_back(*std::move(registration));
        } else {
            give_up(fmt::format("pinning is refused ({})", registration.error().message));
        }
    }
    void release() {
        const auto begun = Clock::now();
        held_.clear();
        ms_ += ms_since(begun);
    }
    bool pins() const { return pins_; }
    double ms() const { return ms_; }

  private:
    void give_up(const std::string& reason) {
        pins_ = false;
        if (log_) log_(reason + ": copying pageable memory, which is slower");
    }

    const Log& log_;
    bool pins_;
    double ms_ = 0;
    std::vector<Registration> held_;
};

/// Starts the copy of `piece` to each shard that has rows of it.
Status copy_piece(const format::Model& model, std::span<Shard* const> shards, RowRange piece,
                  std::vector<Packed>& packed) {
    for (std::size_t s = 0; s < shards.size(); ++s) {
        const RowRange of = shards[s]->rows();
        const RowRange here{std::max(piece.first, of.first), std::min(piece.last, of.last)};
        if (here.first >= here.last) continue;
        if (Status done = start_copy(model, *shards[s], here, packed[s]); !done) return done;
    }
    return {};
}

}  // namespace

std::size_t upload_bytes_needed(std::size_t rows, std::size_t dim) {
    return is_padded(dim) ? std::min(rows, rows_of_piece(dim)) * dim * sizeof(float) : 0;
}

Result<UploadFacts> upload_vectors(const format::Model& model, std::span<Shard* const> shards,
                                   bool pin, const Log& log) {
    const auto begun = Clock::now();
    auto next_progress = begun + kProgressPause;
    const auto vectors = std::as_bytes(model.vectors());
    const std::size_t step = rows_of_piece(model.dim());
    const std::size_t row_bytes = model.dim() * sizeof(float);
    std::vector<Packed> packed(shards.size());
    PieceLocks locks(pin, vectors, log);

    const auto copy_all = [&]() -> Status {
        for (std::size_t first = 0; first < model.rows(); first += step) {
            const RowRange piece{first, std::min(first + step, model.rows())};
            locks.lock(vectors.subspan(piece.first * row_bytes, piece.size() * row_bytes));
            if (Status done = copy_piece(model, shards, piece, packed); !done) return done;
            if (log && Clock::now() >= next_progress) {
                log(fmt::format("uploading: {} of {} MB", piece.last * row_bytes / 1000000,
                                vectors.size() / 1000000));
                next_progress = Clock::now() + kProgressPause;
            }
        }
        for (const Shard* shard : shards) {
            if (Status used = use_device(shard->device()); !used) return used;
            if (Status done = shard->stream().synchronize(); !done) return done;
        }
        return {};
    };
    if (Status done = copy_all(); !done) {
        // A copy that still runs must not lose its memory.
        for (const Shard* shard : shards) (void)shard->stream().synchronize();
        return done.error();
    }
    locks.release();
    return UploadFacts{locks.pins(), locks.ms(), ms_since(begun)};
}

}  // namespace gloved::kernels::cuda
