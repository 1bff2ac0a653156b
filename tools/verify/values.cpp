#include "tools/verify/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/format/layout.hpp"
#include "common/progress.hpp"
#include "kernels/canonical.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using format::Section;

/// Small enough that a block is still in the cache when it is hashed.
constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// The smallest and the largest norm, with their rows.
struct NormRange {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    std::size_t low_row = kNone;
    std::size_t high_row = kNone;

    void add(const NormRange& later) {
        if (later.low < low) low = later.low, low_row = later.low_row;
        if (later.high > high) high = later.high, high_row = later.high_row;
    }
};

struct Block {
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t bad_norm = kNone;  // first row whose norm is not the canonical one
    std::size_t bad_norms = 0;
    std::size_t not_finite = kNone;  // first row with a component that is not
    NormRange norms;
    std::optional<ComponentRanges> components;
};

void scan(const Model& model, Block& block) {
    block.bad_norm = block.not_finite = kNone;
    block.bad_norms = 0;
    block.norms = {};
    if (!block.components) block.components.emplace(model.dim());
    block.components->reset();
    for (std::size_t row = block.first; row < block.last; ++row) {
        const auto vector = model.vector(row);
        const double stored = model.norms()[row];
        const double computed = kernels::canonical_norm(vector.data(), vector.size());
        // By bits: NaN would compare unequal to itself, and −0 equal to 0.
        if (std::bit_cast<std::uint64_t>(stored) != std::bit_cast<std::uint64_t>(computed)) {
            block.bad_norm = std::min(block.bad_norm, row);
            ++block.bad_norms;
        }
        // Sums of squares of finite float32 are far below the limit of float64: a finite norm means
        // finite components.
        if (!std::isfinite(computed)) block.not_finite = std::min(block.not_finite, row);
        block.norms.add({stored, stored, row, row});
    }
    block.components->add(model.vector(block.first).data(), block.last - block.first);
}

/// A section that is hashed in the pass over the rows.
struct HashedSection {
    const Section* section;
    std::size_t row_bytes;
    format::Checksum checksum;
};

/// XXH3-64 of `bytes`; nullopt once `stop` is set.
std::optional<std::uint64_t> hash_all(std::span<const std::byte> bytes,
                                      const std::atomic<bool>& stop) {
    format::Checksum checksum;
    while (!bytes.empty()) {
        if (stop) return std::nullopt;
        const auto piece = bytes.first(std::min(bytes.size(), kBlockBytes));
        checksum.update(piece);
        bytes = bytes.subspan(piece.size());
    }
    return checksum.value();
}

void report_checksum(const Model& model, const Section& section, std::uint64_t computed,
                     const Reporter& report) {
    const bool same = computed == section.checksum;
    report({"checksum of " + section.name, same,
            same ? format::hex(computed)
                 : fmt::format("{}/{}: section '{}' has checksum {}, its bytes give {}",
                               model.path(), format::kValuesFile, section.name,
                               format::hex(section.checksum), format::hex(computed))});
}

/// Checks that bytes between sections, which no checksum covers, are zero.
void check_padding(const Model& model, const Reporter& report) {
    const auto bytes = model.mapped_values();
    std::uint64_t at = format::kHeaderBytes;
    std::uint64_t padding = 0;
    const auto check_to = [&](std::uint64_t end) -> std::optional<std::uint64_t> {
        const auto gap = bytes.subspan(at, end - at);
        padding += gap.size();
        const auto found =
            std::ranges::find_if(gap, [](std::byte byte) { return byte != std::byte{0}; });
        if (found == gap.end()) return std::nullopt;
        return at + static_cast<std::uint64_t>(found - gap.begin());
    };
    std::optional<std::uint64_t> bad;
    for (const Section& section : model.header().sections) {
        if (!bad) bad = check_to(section.offset);
        at = section.offset + section.bytes;
    }
    if (!bad) bad = check_to(bytes.size());
    report({"padding", !bad,
            bad ? fmt::format("{}/{}: byte {} lies between sections and is not zero", model.path(),
                              format::kValuesFile, *bad)
                : fmt::format("{} bytes between sections, all zero", padding)});
}

/// «0.25 at row 17 ("the"), dimension 3»: names the first component in [first, last) that equals
/// `value`; −0 equals 0.
std::string component_name(const Model& model, float value, std::size_t first, std::size_t last) {
    const auto components =
        model.vectors().subspan(first * model.dim(), (last - first) * model.dim());
    const auto found = std::ranges::find(components, value);
    if (found == components.end()) return "none";  // all are NaN
    const std::size_t index =
        first * model.dim() + static_cast<std::size_t>(found - components.begin());
    return fmt::format("{:.6g} at {}, dimension {}", *found, row_name(model, index / model.dim()),
                       index % model.dim());
}

std::string norm_name(const Model& model, double norm, std::size_t row) {
    return row == kNone ? "none" : fmt::format("{:.6g} at {}", norm, row_name(model, row));
}

/// The blocks with the least and the greatest component, to be searched for its place.
struct ExtremeBlocks {
    std::pair<std::size_t, std::size_t> least;
    std::pair<std::size_t, std::size_t> greatest;
};

void report_rows(const Model& model, const Block& all, const ExtremeBlocks& extremes,
                 const Reporter& report) {
    if (all.bad_norm == kNone) {
        report({"norms", true, "equal to the canonical ones, bit for bit"});
    } else {
        const auto vector = model.vector(all.bad_norm);
        report({"norms", false,
                fmt::format("{} wrong; the first: {} has {}, its vector gives {}", all.bad_norms,
                            row_name(model, all.bad_norm), model.norms()[all.bad_norm],
                            kernels::canonical_norm(vector.data(), vector.size()))});
    }
    report({"finite", all.not_finite == kNone,
            all.not_finite == kNone
                ? "no NaN, no infinity"
                : row_name(model, all.not_finite) + " has a component that is not finite"});
    const auto& [least, greatest] = extremes;
    report(
        {"components", true,
         fmt::format(
             "{} to {}", component_name(model, all.components->least(), least.first, least.second),
             component_name(model, all.components->greatest(), greatest.first, greatest.second))});
    report({"range of norms", true,
            fmt::format("{} to {}", norm_name(model, all.norms.low, all.norms.low_row),
                        norm_name(model, all.norms.high, all.norms.high_row))});
}

}  // namespace

Result<ComponentRanges> check_values(const Model& model, std::size_t threads,
                                     const std::atomic<bool>& stop, const Reporter& report) {
    // Sections of one entry a row are hashed in the pass over the rows, others on threads of their
    // own.
    std::vector<HashedSection> in_pass;
    std::vector<std::pair<const Section*, std::future<std::optional<std::uint64_t>>>> beside;
    for (const Section& section : model.header().sections) {
        if (section.name == format::kNorms || section.name == format::kVectors ||
            section.name == format::kRanks) {
            in_pass.push_back(
                {&section, static_cast<std::size_t>(section.bytes) / model.rows(), {}});
        } else {
            beside.emplace_back(
                &section, std::async(std::launch::async, hash_all, model.section_bytes(section),
                                     std::cref(stop)));
        }
    }

    const std::size_t row_bytes = model.dim() * sizeof(float);
    const std::size_t block_rows = std::max<std::size_t>(1, kBlockBytes / row_bytes);
    std::optional<Progress> progress(std::in_place, "verifying", model.rows() * row_bytes);
    Block all;
    all.components.emplace(model.dim());
    ExtremeBlocks extremes;
    const auto produce = source::pieces_of(model.rows(), block_rows, stop);
    const auto merge = [&](Block& block) -> Status {
        for (HashedSection& hashed : in_pass) {
            hashed.checksum.update(model.section_bytes(*hashed.section)
                                       .subspan(block.first * hashed.row_bytes,
                                                (block.last - block.first) * hashed.row_bytes));
        }
        all.bad_norm = std::min(all.bad_norm, block.bad_norm);
        all.bad_norms += block.bad_norms;
        all.not_finite = std::min(all.not_finite, block.not_finite);
        all.norms.add(block.norms);
        if (block.components->least() < all.components->least())
            extremes.least = {block.first, block.last};
        if (block.components->greatest() > all.components->greatest())
            extremes.greatest = {block.first, block.last};
        all.components->add(*block.components);
        progress->update(block.last * row_bytes);
        return {};
    };
    const auto work = [&](Block& block) { scan(model, block); };
    if (Status scanned = source::run_ordered<Block>(threads, produce, work, merge); !scanned)
        return scanned.error();
    progress.reset();  // wipes its line before others are printed

    for (const Section& section : model.header().sections) {
        const auto hashed = std::ranges::find(in_pass, &section, &HashedSection::section);
        if (hashed != in_pass.end()) {
            report_checksum(model, section, hashed->checksum.value(), report);
            continue;
        }
        const auto other = std::ranges::find_if(
            beside, [&](const auto& entry) { return entry.first == &section; });
        const auto computed = other->second.get();
        if (!computed) return source::interrupted();
        report_checksum(model, section, *computed, report);
    }
    check_padding(model, report);
    report_rows(model, all, extremes, report);
    return *std::move(all.components);
}

}  // namespace gloved::verify
