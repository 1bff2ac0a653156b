#include "tools/verify/planes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/format/layout.hpp"
#include "common/format/planes.hpp"
#include "common/progress.hpp"
#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/planes/cutoff.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::verify {
namespace {

using format::kGroupRows;
using format::kStepBytes;
using format::kStepDims;
using format::Model;
using format::PlaneShape;

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// What float64 may be off by, for dim <= 4096 (docs/certified-search.md §3): P by less than 10⁻¹²
// |c|, so that P² is by less than 2.1 · 10⁻¹² c·c, and the squares of what is stored by less than
// 10⁻¹⁵ of themselves, which is at most 225 c·c. What passes with these allowances holds. What
// gloved-convert stores stays a seventh of a step within each limit, far more than they take.
constexpr double kProjectionTolerance = 2e-12;
constexpr double kSquareTolerance = 3e-12;

/// A row as its group stores it.
struct StoredRow {
    std::array<std::uint8_t, format::kMaxDim + kStepDims> codes;  // (8 · steps)
    std::uint16_t projection = 0;
    std::uint16_t residual = 0;
};

void read_row(const PlaneShape& shape, std::span<const std::byte> groups, std::size_t row,
              StoredRow& stored) {
    const auto group = groups.subspan(row / kGroupRows * shape.group_bytes(), shape.group_bytes());
    const std::size_t lane = row % kGroupRows;
    for (std::size_t step = 0; step < shape.steps(); ++step) {
        for (std::size_t i = 0; i < kStepDims / 2; ++i) {
            const auto both = static_cast<unsigned>(group[step * kStepBytes + 4 * lane + i]);
            stored.codes[step * kStepDims + i] = static_cast<std::uint8_t>(both & 15U);
            stored.codes[step * kStepDims + kStepDims / 2 + i] =
                static_cast<std::uint8_t>(both >> 4U);
        }
    }
    const auto bounds = group.last(kStepBytes);
    std::memcpy(&stored.projection, bounds.data() + lane * sizeof stored.projection,
                sizeof stored.projection);
    std::memcpy(&stored.residual, bounds.data() + (kGroupRows + lane) * sizeof stored.residual,
                sizeof stored.residual);
}

bool is_zero(const StoredRow& stored, std::size_t from, std::size_t to) {
    return std::all_of(stored.codes.begin() + static_cast<std::ptrdiff_t>(from),
                       stored.codes.begin() + static_cast<std::ptrdiff_t>(to),
                       [](std::uint8_t code) { return code == 0; });
}

/// Describes what is wrong with a row's projection or residual; empty if both are right.
std::string fault_of(std::span<const float> vector, const StoredRow& stored) {
    double lanes[kernels::kCanonicalLanes] = {};
    double square = 0;
    for (std::size_t i = 0; i < vector.size(); ++i) {
        const double level = 2.0 * stored.codes[i] - kernels::planes::kTopLevel;
        lanes[i % kernels::kCanonicalLanes] += static_cast<double>(vector[i]) * level;
        square += level * level;
    }
    const double step = kernels::planes::stored_step(vector.size());
    const double norm = kernels::canonical_norm(vector.data(), vector.size());
    const double projection = kernels::combine_lanes(lanes) / norm;
    const double allowance = kProjectionTolerance * std::sqrt(square);
    // Comparisons are written so that NaN fails.
    if (!(stored.projection * step <= projection - allowance &&
          projection + allowance < (stored.projection + kernels::planes::kStoredWithin) * step)) {
        return fmt::format(
            "its projection is stored as {} units, its codes and its vector give {:.6g}",
            stored.projection, projection / step);
    }
    // The residual lies between these.
    const double most = stored.residual * step;
    const double least = (stored.residual - kernels::planes::kStoredWithin) * step;
    const double of_projection = projection * projection;
    if (!(most * most + of_projection >= square * (1 + kSquareTolerance) &&
          (least <= 0 || least * least + of_projection < square * (1 - kSquareTolerance)))) {
        return fmt::format(
            "its residual is stored as {} units, its codes and its vector give {:.6g}",
            stored.residual, std::sqrt(std::max(0.0, square - projection * projection)) / step);
    }
    return {};
}

/// Counts faulty rows and keeps the first.
struct Faults {
    std::size_t count = 0;
    std::size_t first = kNone;

    void add(std::size_t row) {
        ++count;
        first = std::min(first, row);
    }
    void add(const Faults& other) {
        count += other.count;
        first = std::min(first, other.first);
    }
};

struct Piece {
    std::size_t first = 0;  // group
    std::size_t last = 0;
    Faults not_zero;
    Faults wrong;
    std::size_t uncovered = 0;
};

void scan(const Model& model, std::span<const std::byte> groups, Piece& piece) {
    const PlaneShape shape{model.rows(), model.dim()};
    piece.not_zero = piece.wrong = {};
    piece.uncovered = 0;
    const std::size_t end = shape.steps() * kStepDims;
    StoredRow stored;
    for (std::size_t row = piece.first * kGroupRows; row < piece.last * kGroupRows; ++row) {
        read_row(shape, groups, row, stored);
        const bool covered = row < shape.rows && kernels::bound_covers(model.norms()[row]);
        if (!covered) {
            piece.uncovered += row < shape.rows ? 1U : 0U;
            if (!is_zero(stored, 0, end) || stored.projection != 0 || stored.residual != 0)
                piece.not_zero.add(row);
            continue;
        }
        if (!is_zero(stored, shape.dim, end)) piece.not_zero.add(row);
        if (!fault_of(model.vector(row), stored).empty()) piece.wrong.add(row);
    }
}

/// Reports whether all is zero that FORMAT.md has zero.
void report_padding(const Model& model, const Faults& not_zero, std::size_t uncovered,
                    const std::string& path, const Reporter& report) {
    const std::size_t groups_bytes = model.planes()->size();
    const auto behind = model.mapped_planes().subspan(format::kHeaderBytes + groups_bytes);
    const auto byte =
        std::ranges::find_if(behind, [](std::byte value) { return value != std::byte{0}; });
    if (byte != behind.end()) {
        report({"padding of planes", false,
                fmt::format("{}: byte {} lies behind the groups and is not zero", path,
                            format::kHeaderBytes + groups_bytes +
                                static_cast<std::size_t>(byte - behind.begin()))});
    } else if (not_zero.count != 0) {
        const bool is_row = not_zero.first < model.rows();
        report(
            {"padding of planes", false,
             fmt::format("{}: {} rows with codes or numbers where zeros belong; the first: {}",
                         path, not_zero.count,
                         is_row ? row_name(model, not_zero.first)
                                : fmt::format("place {}, behind the last row", not_zero.first))});
    } else {
        report({"padding of planes", true,
                fmt::format(
                    "zero behind dimensions and rows, and of {} rows whose norms no bound covers",
                    uncovered)});
    }
}

}  // namespace

Status check_planes(const Model& model, std::size_t threads, const std::atomic<bool>& stop,
                    const Reporter& report) {
    if (!model.planes()) return {};
    const auto groups = *model.planes();
    const PlaneShape shape{model.rows(), model.dim()};
    const std::string path = model.path() + "/" + format::kPlanesFile;
    const std::size_t piece_groups =
        std::max<std::size_t>(1, kPieceBytes / (kGroupRows * model.dim() * sizeof(float)));
    std::optional<Progress> progress(std::in_place, "planes", groups.size());
    format::Checksum checksum;
    Faults not_zero;
    Faults wrong;
    std::size_t uncovered = 0;
    const auto produce = source::pieces_of(shape.groups(), piece_groups, stop);
    const auto work = [&](Piece& piece) { scan(model, groups, piece); };
    const auto take = [&](Piece& piece) -> Status {
        checksum.update(groups.subspan(piece.first * shape.group_bytes(),
                                       (piece.last - piece.first) * shape.group_bytes()));
        not_zero.add(piece.not_zero);
        wrong.add(piece.wrong);
        uncovered += piece.uncovered;
        progress->update(piece.last * shape.group_bytes());
        return {};
    };
    if (Status scanned = source::run_ordered<Piece>(threads, produce, work, take); !scanned)
        return scanned;
    progress.reset();  // wipes its line before others are written

    const std::uint64_t stored_checksum = model.planes_header()->checksum;
    report({"checksum of planes", checksum.value() == stored_checksum,
            checksum.value() == stored_checksum
                ? format::hex(stored_checksum)
                : fmt::format("{}: the checksum is {}, the bytes give {}", path,
                              format::hex(stored_checksum), format::hex(checksum.value()))});

    report_padding(model, not_zero, uncovered, path, report);
    if (wrong.count == 0) {
        report({"bounds of planes", true,
                fmt::format("hold for all {} rows that they cover", model.rows() - uncovered)});
    } else {
        StoredRow stored;
        read_row(shape, groups, wrong.first, stored);
        report({"bounds of planes", false,
                fmt::format("{}: {} rows' do not hold; the first: {}: {}", path, wrong.count,
                            row_name(model, wrong.first),
                            fault_of(model.vector(wrong.first), stored))});
    }
    return {};
}

}  // namespace gloved::verify
