#include "kernels/cuda/upload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/cuda/runtime.hpp"

namespace gloved::kernels::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// Bytes of a piece: large enough that calls take no time beside the copy, small enough that
/// locking the next piece overlaps with it.
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kProgressPause{1};

bool is_padded(std::size_t dim) { return dim % kStrideFloats != 0; }

double ms_since(Clock::time_point begun) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

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
        auto made = Packed::allocate(rows.size() * dim);
        if (!made) return made.error();
        packed = *std::move(made);
    }
    if (Status done = copy_async(packed.data(), from, rows.size() * dim, shard.stream()); !done)
        return done;
    return check(launch_pad_rows(packed.data(), static_cast<std::uint32_t>(rows.size()),
                                 static_cast<std::uint32_t>(dim), shard.stride(),
                                 shard.vector_at(rows.first), shard.stream().get()),
                 "launch of pad_rows");
}

}  // namespace

std::size_t upload_bytes_needed(std::size_t rows, std::size_t dim) {
    return is_padded(dim) ? std::min(rows, rows_of_piece(dim)) * dim * sizeof(float) : 0;
}

Result<UploadFacts> upload_vectors(const format::Model& model,
                                   std::span<const std::unique_ptr<Shard>> shards, bool pin,
                                   const std::function<void(const std::string&)>& log) {
    const auto begun = Clock::now();
    auto next_progress = begun + kProgressPause;
    UploadFacts facts;
    facts.pinned = pin;
    // Pieces are whole pages only if the vectors begin on a page. Pages larger than 4 KiB may begin
    // before them.
    if (pin && reinterpret_cast<std::uintptr_t>(model.vectors().data()) %
                       static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) !=
                   0) {
        facts.pinned = false;
        if (log)
            log("the vectors do not begin on a page boundary: copying pageable memory, which is "
                "slower");
    }
    std::vector<Packed> packed(shards.size());
    std::vector<Registration> registrations;

    const std::size_t step = rows_of_piece(model.dim());
    const auto vectors = std::as_bytes(model.vectors());
    const std::size_t row_bytes = model.dim() * sizeof(float);
    const auto copy_all = [&]() -> Status {
        for (std::size_t first = 0; first < model.rows(); first += step) {
            const RowRange piece{first, std::min(first + step, model.rows())};
            if (facts.pinned) {
                const auto locking = Clock::now();
                auto registration = Registration::create(
                    vectors.subspan(piece.first * row_bytes, piece.size() * row_bytes));
                facts.pin_ms += ms_since(locking);
                if (registration) {
                    registrations.push_back(*std::move(registration));
                } else {
                    facts.pinned = false;
                    if (log) {
                        log(fmt::format(
                            "pinning is refused ({}): copying pageable memory, which is slower",
                            registration.error().message));
                    }
                }
            }
            for (std::size_t s = 0; s < shards.size(); ++s) {
                const RowRange of = shards[s]->rows();
                const RowRange here{std::max(piece.first, of.first), std::min(piece.last, of.last)};
                if (here.first >= here.last) continue;
                if (Status done = start_copy(model, *shards[s], here, packed[s]); !done)
                    return done;
            }
            if (log && Clock::now() >= next_progress) {
                log(fmt::format("uploading: {} of {} MB", piece.last * row_bytes / 1000000,
                                vectors.size() / 1000000));
                next_progress = Clock::now() + kProgressPause;
            }
        }
        for (const auto& shard : shards) {
            if (Status used = use_device(shard->device()); !used) return used;
            if (Status done = shard->stream().synchronize(); !done) return done;
        }
        return {};
    };
    if (Status done = copy_all(); !done) {
        // A copy that still runs must not lose its memory.
        for (const auto& shard : shards) (void)shard->stream().synchronize();
        return done.error();
    }
    const auto unlocking = Clock::now();
    registrations.clear();
    facts.pin_ms += ms_since(unlocking);
    facts.total_ms = ms_since(begun);
    return facts;
}

}  // namespace gloved::kernels::cuda
