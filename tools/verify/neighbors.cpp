#include "tools/verify/neighbors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/format/neighbors.hpp"
#include "common/progress.hpp"
#include "tools/source/ordered_pipeline.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using format::Neighbors;
using format::Row;

/// Lists that a thread checks at a time.
constexpr std::size_t kPieceLists = 4;

/// Lists to check, [first, last) of the selected rows, and the rows of those that are wrong.
struct Piece {
    std::size_t first = 0;
    std::size_t last = 0;
    std::vector<std::size_t> wrong;
};

/// `count` different rows in ascending order.
std::vector<std::size_t> choose_rows(std::size_t rows, const NeighborsChecks& checks) {
    std::vector<std::size_t> all(rows);
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (checks.rows >= rows) return all;
    std::vector<std::size_t> chosen;
    std::mt19937_64 random(checks.seed);
    std::ranges::sample(all, std::back_inserter(chosen), static_cast<std::ptrdiff_t>(checks.rows),
                        random);
    return chosen;
}

/// The list of `row` by a plain search. `norms` are the oracle's.
std::vector<Row> nearest(const Model& model, std::span<const double> norms, std::size_t row,
                         std::size_t k) {
    const auto vector = model.vector(row);
    if (std::ranges::all_of(vector, [](float value) { return value == 0; })) return {};
    std::vector<Row> rows;
    for (const kernels::Hit& hit :
         oracle_top(oracle_scores(model, norms, vector), k,
                    [&](std::uint32_t other, double) { return other != row; })) {
        rows.push_back(hit.row);
    }
    return rows;
}

/// Where the stored list of `row` differs from the right one.
std::string describe_difference(const Model& model, std::span<const double> norms,
                                const Neighbors& neighbors, std::size_t row) {
    const auto stored = neighbors.of(row);
    const auto right = nearest(model, norms, row, neighbors.k());
    const auto name = [&](std::span<const Row> list, std::size_t at) {
        return at < list.size() ? row_name(model, list[at]) : "its end";
    };
    std::size_t at = 0;
    while (at < std::min(stored.size(), right.size()) && stored[at] == right[at]) ++at;
    return fmt::format("the list of {} has {} at place {}, and a plain search {}",
                       row_name(model, row), name(stored, at), at + 1, name(right, at));
}

Status check_lists(const Model& model, const Neighbors& neighbors, const NeighborsChecks& checks,
                   std::size_t threads, const std::atomic<bool>& stop, const Reporter& report) {
    const auto rows = choose_rows(model.rows(), checks);
    const auto norms = oracle_norms(model);
    std::optional<Progress> progress(std::in_place, "neighbors", rows.size(),
                                     ProgressUnit{"words", 1});
    std::size_t wrong = 0;
    std::size_t first_wrong = 0;
    const auto produce = source::pieces_of(rows.size(), kPieceLists, stop);
    const auto work = [&](Piece& piece) {
        piece.wrong.clear();
        for (std::size_t i = piece.first; i < piece.last; ++i) {
            if (!std::ranges::equal(neighbors.of(rows[i]),
                                    nearest(model, norms, rows[i], neighbors.k()))) {
                piece.wrong.push_back(rows[i]);
            }
        }
    };
    const auto take = [&](Piece& piece) -> Status {
        if (wrong == 0 && !piece.wrong.empty()) first_wrong = piece.wrong.front();
        wrong += piece.wrong.size();
        progress->update(piece.last);
        return {};
    };
    if (Status checked = source::run_ordered<Piece>(threads, produce, work, take); !checked)
        return checked;
    progress.reset();  // wipes its line before others are written
    if (wrong != 0) {
        report({"lists of neighbors", false,
                fmt::format("{}/{}: {} of {} lists are wrong; the first: {}; remove the file and "
                            "make it again with gloved-neighbors",
                            model.path(), format::kNeighborsFile, wrong, rows.size(),
                            describe_difference(model, norms, neighbors, first_wrong))});
    } else {
        report({"lists of neighbors", true,
                fmt::format("{} of {} are those of a plain float64 search", rows.size(),
                            model.rows())});
    }
    return {};
}

/// Opens the file and reports that. Nothing if there is none or it cannot be used.
std::optional<Neighbors> open_and_report(const Model& model, const Reporter& report) {
    auto opened = Neighbors::open(model);
    if (!opened) {
        report({"neighbors", false, opened.error().message});
        return std::nullopt;
    }
    if (!*opened) {
        report({"neighbors", true, "none"});
        return std::nullopt;
    }
    report(
        {"neighbors", true,
         fmt::format("version {}, {} of each word, {} bytes, of this model",
                     format::kNeighborsVersion, (*opened)->k(), (*opened)->header().file_bytes())});
    return *std::move(opened);
}

}  // namespace

bool report_neighbors_header(const Model& model, const Reporter& report) {
    return open_and_report(model, report).has_value();
}

Status check_neighbors(const Model& model, const NeighborsChecks& checks, std::size_t threads,
                       const std::atomic<bool>& stop, const Reporter& report) {
    const auto neighbors = open_and_report(model, report);
    if (!neighbors) return {};
    const Status sound = neighbors->verify();
    report({"rows of neighbors", static_cast<bool>(sound),
            sound ? "the checksum, distinct other rows in each list, and zeros behind the lists"
                  : sound.error().message});
    if (!sound) return {};
    return check_lists(model, *neighbors, checks, threads, stop, report);
}

}  // namespace gloved::verify
