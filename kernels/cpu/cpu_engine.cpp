#include "kernels/cpu/cpu_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/cpu/canonical_scan.hpp"
#include "kernels/cpu/dots.hpp"
#include "kernels/cpu/eligible.hpp"
#include "kernels/cpu/fine_pass.hpp"
#include "kernels/cpu/plane_pass.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {
namespace {

/// For how long threads look for work before they sleep: longer than a pass takes between two of
/// its parts. To wake a thread takes as long as a tenth of a query of 341,479 × 100.
constexpr std::chrono::microseconds kPatience{20};

/// Maximum number of queries of a plane pass, unless threads divide more between them.
constexpr std::size_t kMaxPlaneQueries = 256;
/// Plane passes with as many queries for every thread divide the queries between the threads, not
/// the rows.
constexpr std::size_t kMinShare = 16;
/// Queries of such a pass for each thread, at most.
constexpr std::size_t kMaxShare = 256;
/// A plane pass of so many queries reads the fine plane, if there is one: it has twice the bytes,
/// but takes fewer operations and leaves fewer survivors. Many hits leave more survivors, so that
/// each kHitsOfQuery of them count as a further query (docs/performance-history.md).
constexpr std::size_t kMinFineQueries = 8;
constexpr std::size_t kHitsOfQuery = 25;

/// Maximum k for a plane pass. Beyond, the k-th score is so low that the plane leaves many
/// survivors, and reading them here and there is slower than reading all vectors in order
/// (docs/performance-history.md). A fine plane leaves fewer: with it k may be up to the number of
/// rows divided by kRowsOfFineHit.
constexpr std::size_t kMaxPlaneK = 2048;
constexpr std::size_t kRowsOfFineHit = 200;

/// Where a query's filter leaves no more than one row in so many, each of these rows is scored,
/// though a pass reads all rows in order, over the plane 13 % of the bytes of most.
constexpr std::size_t kFewOfPlane = 64;
constexpr std::size_t kFewOfScan = 4;
constexpr std::size_t kNoRange = std::numeric_limits<std::size_t>::max();

/// What a filter asks but for its least score, for a map.
using FilterKey =
    std::tuple<std::uint32_t, std::size_t, std::size_t, ListMask, ListMask, std::uint64_t>;

FilterKey key_of(const Filter& filter) {
    // No range is after all others.
    const RowRange rows = filter.rows.value_or(RowRange{kNoRange, kNoRange});
    const std::uint64_t lists = filter.names_lists() ? filter.lists->serial() : 0;
    return {filter.rank_below, rows.first, rows.last, filter.within, filter.without, lists};
}

class CpuEngine final : public Engine {
  public:
    CpuEngine(const format::Model& model, const DotKernel& kernel, const EngineOptions& options)
        : model_(model),
          kernel_(kernel),
          plane_kernel_(options.planes ? plane_kernel_for(kernel.name) : nullptr),
          pool_(options.threads, kPatience),
          scan_(model, kernel) {
        if (plane_kernel_ == nullptr) return;
        for (unsigned thread = 0; thread < pool_.size(); ++thread) alone_.emplace_back(1U);
        const auto begin = std::chrono::steady_clock::now();
        plane_.emplace(model, pool_);
        plane_pass_.emplace(model, kernel, view(*plane_, plane_kernel_->loop));
        if (options.log) {
            options.log(fmt::format("4-bit plane: {:.1f} MB, {} in {:.0f} ms",
                                    static_cast<double>(plane_->bytes().size()) / 1e6,
                                    plane_->stored() ? "mapped" : "built", ms_since(begin)));
        }
        if (options.fine_plane == FinePlane::never || plane_kernel_->fine_loop.width == 0) return;
        fine_pass_.emplace(model, kernel, plane_->uncovered(), plane_kernel_->fine_loop, options,
                           pool_);
    }

    EngineKind kind() const override { return EngineKind::cpu; }
    std::string description() const override {
        const char* const planes = !plane_                   ? ""
                                   : fine_plane_bytes() != 0 ? ", planes of 4 and 7 bits by "
                                                             : ", plane by ";
        return fmt::format("{}, {} thread{}{}{}", kernel_.name, pool_.size(),
                           pool_.size() == 1 ? "" : "s", planes, plane_ ? plane_kernel_->name : "");
    }
    Result<std::vector<Answer>> run(std::span<const Query> queries,
                                    const std::function<void()>& meanwhile) override;
    std::size_t fine_plane_bytes() const override {
        return fine_pass_ ? fine_pass_->bytes() : std::size_t{0};
    }

  private:
    bool suits_plane(const Query& query);
    bool leaves_few_rows(const Query& query);
    std::vector<Row> rows_left(const Query& query) const;
    void run_plane(std::span<const Query* const> queries, RowRange range,
                   std::span<Answer* const> answers);

    const format::Model& model_;
    const DotKernel& kernel_;
    const PlaneKernel* const plane_kernel_;  // null: every query is answered by scans
    ThreadPool pool_;
    std::deque<ThreadPool> alone_;  // one for each thread of pool_, which is the only one in it
    CanonicalScan scan_;
    std::optional<planes::Plane> plane_;
    std::optional<PlanePass> plane_pass_;
    std::optional<FinePass> fine_pass_;  // for passes of at least kMinFineQueries
};

Result<std::vector<Answer>> CpuEngine::run(std::span<const Query> queries,
                                           const std::function<void()>&) {
    std::vector<Answer> answers(queries.size());
    struct Batch {
        std::vector<const Query*> queries{};
        std::vector<Answer*> answers{};
        std::size_t vectors = 0;

        void add(const Query& query, Answer& answer) {
            queries.push_back(&query);
            answers.push_back(&answer);
            vectors += vectors_of(query);
        }
        bool has_room(const Query& query, std::size_t most) const {
            return queries.empty() || vectors + vectors_of(query) <= most;
        }
    };
    const RowRange all_rows{0, model_.rows()};
    const auto by_plane = [&](Batch& batch, RowRange range) {
        const Batch now = std::exchange(batch, {});
        if (!now.queries.empty()) run_plane(now.queries, range, now.answers);
    };
    const auto by_scan = [&](Batch& batch, RowRange range) {
        const Batch now = std::exchange(batch, {});
        if (!now.queries.empty()) scan_.run(now.queries, range, now.answers, pool_);
    };
    const auto by_scan_of_few = [&](Batch& batch) {
        const Batch now = std::exchange(batch, {});
        scan_.run(now.queries, rows_left(*now.queries.front()), now.answers, pool_);
    };
    // Queries with a plane pass are batched apart from those without, and those that share the few
    // rows that their filter leaves apart from all others.
    const std::size_t max_plane = std::max(kMaxPlaneQueries, pool_.size() * kMaxShare);
    constexpr std::size_t kMaxScan = CanonicalScan::kMaxVectors;
    Batch plane;
    Batch scan;
    std::map<FilterKey, Batch> few;
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const Query& query = queries[i];
        if (leaves_few_rows(query)) {
            Batch& batch = few[key_of(query.filter)];
            if (!batch.has_room(query, kMaxScan)) by_scan_of_few(batch);
            batch.add(query, answers[i]);
            continue;
        }
        const bool has_plane = suits_plane(query);
        if (query.filter.rows) {
            // Usually few rows: a pass over these alone.
            Batch alone;
            alone.add(query, answers[i]);
            has_plane ? by_plane(alone, *query.filter.rows) : by_scan(alone, *query.filter.rows);
        } else if (has_plane) {
            if (!plane.has_room(query, max_plane)) by_plane(plane, all_rows);
            plane.add(query, answers[i]);
        } else {
            if (!scan.has_room(query, kMaxScan)) by_scan(scan, all_rows);
            scan.add(query, answers[i]);
        }
    }
    by_plane(plane, all_rows);
    by_scan(scan, all_rows);
    for (auto& [key, batch] : few) by_scan_of_few(batch);
    return answers;
}

/// Whether reading a plane first can be faster. If ranks are limited, k says little about the
/// number of survivors.
bool CpuEngine::suits_plane(const Query& query) {
    if (!plane_ || !std::holds_alternative<Cosine>(query.kind)) return false;
    const bool all_ranks = query.filter.rank_below == std::numeric_limits<std::uint32_t>::max();
    if (query.k <= kMaxPlaneK || !all_ranks) return true;
    const std::size_t rows = most_rows(query.filter, model_.rows());
    return query.k <= rows / kRowsOfFineHit && fine_pass_ && fine_pass_->get() != nullptr;
}

/// Whether the query's filter is known to leave so few rows that it pays to score each of them.
bool CpuEngine::leaves_few_rows(const Query& query) {
    Filter filter = query.filter;
    const std::size_t rows = filter.rows ? filter.rows->size() : model_.rows();
    const bool by_plane = suits_plane(query);
    // A pass over the plane finds the words of a limit on ranks sooner than their ranks are read.
    if (by_plane) filter.rank_below = Filter().rank_below;
    const std::size_t left = most_rows(filter, model_.rows());
    if (by_plane && left > kMaxShortList) return false;
    return left < rows && left <= rows / (by_plane ? kFewOfPlane : kFewOfScan) + 1;
}

/// The rows that the query's filter leaves, in ascending order.
std::vector<Row> CpuEngine::rows_left(const Query& query) const {
    Query of_filter;
    of_filter.filter = query.filter;
    const Eligible eligible(of_filter, model_);
    const RowRange range = query.filter.rows.value_or(RowRange{0, model_.rows()});
    std::vector<Row> left;
    const ListMask within = query.filter.within;
    const RowLists* const lists = query.filter.lists;
    const auto list =
        within != 0 ? lists->short_list(lists->shortest(within)) : std::span<const Row>();
    if (!list.empty()) {
        const auto first = std::ranges::lower_bound(list, range.first);
        std::copy_if(first, std::lower_bound(first, list.end(), range.last),
                     std::back_inserter(left), eligible);
        return left;
    }
    for (std::size_t row = range.first; row < range.last; ++row) {
        if (eligible(static_cast<Row>(row))) left.push_back(static_cast<Row>(row));
    }
    return left;
}

void CpuEngine::run_plane(std::span<const Query* const> queries, RowRange range,
                          std::span<Answer* const> answers) {
    const std::size_t threads = pool_.size();
    std::size_t hits = 0;
    for (const Query* query : queries)
        hits += std::min(query->k, most_rows(query->filter, model_.rows()));
    const bool suits_fine = queries.size() + hits / kHitsOfQuery >= kMinFineQueries;
    const PlanePass* const fine = suits_fine && fine_pass_ ? fine_pass_->get() : nullptr;
    const PlanePass& pass = fine != nullptr ? *fine : *plane_pass_;
    if (queries.size() < threads * kMinShare) return pass.run(queries, range, answers, pool_);
    // Each thread raises its own thresholds, so that fewer rows survive, and takes no lock.
    pool_.run([&](unsigned thread) {
        const std::size_t first = queries.size() * thread / threads;
        const std::size_t count = queries.size() * (thread + 1) / threads - first;
        pass.run(queries.subspan(first, count), range, answers.subspan(first, count),
                 alone_[thread]);
    });
}

}  // namespace

Result<std::unique_ptr<Engine>> make_cpu_engine(const format::Model& model,
                                                const EngineOptions& options) {
    std::string names;
    for (const DotKernel* kernel : all_dot_kernels()) {
        const bool supported = kernel->supported();
        if (supported && (options.simd.empty() || options.simd == kernel->name))
            return std::unique_ptr<Engine>(std::make_unique<CpuEngine>(model, *kernel, options));
        names += fmt::format("{}{}{}", names.empty() ? "" : ", ", kernel->name,
                             supported ? "" : " (not on this processor)");
    }
    return error_with(ErrorCode::unavailable, "no instruction set '{}': there are {}", options.simd,
                      names);
}

}  // namespace gloved::kernels::cpu
