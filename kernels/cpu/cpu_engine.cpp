#include "kernels/cpu/cpu_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/cpu/canonical_scan.hpp"
#include "kernels/cpu/dots.hpp"
#include "kernels/cpu/plane_pass.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/planes/fine_plane.hpp"
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

/// Maximum k for a plane pass. Beyond, the k-th score is so low that the plane leaves many
/// survivors, and reading them here and there is slower than reading all vectors in order
/// (docs/performance-history.md).
constexpr std::size_t kMaxPlaneK = 2048;

/// A list with no more than one row in so many of the model is short enough to score each of its
/// rows: a pass reads all rows, but in order, and 13 % of the bytes of most.
constexpr std::size_t kListedShare = 64;

void log_plane(const EngineOptions& options, const char* bits, std::size_t bytes, bool stored,
               double ms) {
    if (!options.log) return;
    options.log(fmt::format("{} plane: {:.1f} MB, {} in {:.0f} ms", bits,
                            static_cast<double>(bytes) / 1e6, stored ? "mapped" : "built", ms));
}

/// Whether reading the plane first can be faster. If ranks are limited, k says little about the
/// number of survivors.
bool suits_plane(const Query& query) {
    const bool all_ranks = query.filter.rank_below == std::numeric_limits<std::uint32_t>::max();
    return std::holds_alternative<Cosine>(query.kind) && (query.k <= kMaxPlaneK || !all_ranks);
}

class CpuEngine final : public Engine {
  public:
    CpuEngine(const format::Model& model, const DotKernel& kernel, const EngineOptions& options)
        : model_(model),
          lists_(options.lists),
          kernel_(kernel),
          plane_kernel_(options.planes ? plane_kernel_for(kernel.name) : nullptr),
          pool_(options.threads, kPatience),
          scan_(model, *lists_, kernel) {
        if (plane_kernel_ == nullptr) return;
        for (unsigned thread = 0; thread < pool_.size(); ++thread) alone_.emplace_back(1U);
        const auto begin = std::chrono::steady_clock::now();
        plane_.emplace(model, pool_);
        plane_pass_.emplace(model, *lists_, kernel, view(*plane_, plane_kernel_->loop));
        log_plane(options, "4-bit", plane_->bytes().size(), plane_->stored(), ms_since(begin));
        if (!options.fine_plane || plane_kernel_->fine_loop.width == 0) return;
        const auto fine_begin = std::chrono::steady_clock::now();
        fine_plane_.emplace(model, pool_);
        fine_pass_.emplace(model, *lists_, kernel,
                           view(*fine_plane_, plane_->uncovered(), plane_kernel_->fine_loop));
        log_plane(options, "7-bit", fine_plane_->bytes().size(), false, ms_since(fine_begin));
    }

    EngineKind kind() const override { return EngineKind::cpu; }
    std::string description() const override {
        const char* const planes = !plane_       ? ""
                                   : fine_plane_ ? ", planes of 4 and 7 bits by "
                                                 : ", plane by ";
        return fmt::format("{}, {} thread{}{}{}", kernel_.name, pool_.size(),
                           pool_.size() == 1 ? "" : "s", planes, plane_ ? plane_kernel_->name : "");
    }
    using Engine::run;
    Result<std::vector<Answer>> run(std::span<const Query> queries,
                                    const std::function<void()>& meanwhile) override;

  private:
    std::optional<std::span<const Row>> listed_rows(const Query& query) const;
    void run_plane(std::span<const Query* const> queries, RowRange range,
                   std::span<Answer* const> answers);

    const format::Model& model_;
    const std::shared_ptr<const RowLists> lists_;
    const DotKernel& kernel_;
    const PlaneKernel* const plane_kernel_;  // null: every query is answered by scans
    ThreadPool pool_;
    std::deque<ThreadPool> alone_;  // one for each thread of pool_, which is the only one in it
    CanonicalScan scan_;
    std::optional<planes::Plane> plane_;
    std::optional<planes::FinePlane> fine_plane_;
    std::optional<PlanePass> plane_pass_;
    std::optional<PlanePass> fine_pass_;  // for batches that are divided between the threads
};

Result<std::vector<Answer>> CpuEngine::run(std::span<const Query> queries,
                                           const std::function<void()>&) {
    std::vector<Answer> answers(queries.size());
    // Queries with a plane pass are batched apart from those without.
    struct Batch {
        bool by_plane;
        std::size_t max_vectors;
        std::vector<const Query*> queries{};
        std::vector<Answer*> answers{};
        std::size_t vectors = 0;
    };
    Batch plane{true, std::max(kMaxPlaneQueries, pool_.size() * kMaxShare)};
    Batch scan{false, CanonicalScan::kMaxVectors};
    const auto flush = [&](Batch& batch, RowRange range) {
        if (batch.queries.empty()) return;
        batch.by_plane ? run_plane(batch.queries, range, batch.answers)
                       : scan_.run(batch.queries, range, batch.answers, pool_);
        batch.queries.clear();
        batch.answers.clear();
        batch.vectors = 0;
    };
    const RowRange all_rows{0, model_.rows()};
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const Query& query = queries[i];
        if (const auto rows = listed_rows(query)) {
            answers[i] = scan_.run(query, *rows, pool_);
            continue;
        }
        Batch& batch = plane_ && suits_plane(query) ? plane : scan;
        if (query.filter.rows) {
            // Usually few rows: a pass over these alone.
            Batch alone{batch.by_plane, batch.max_vectors, {&query}, {&answers[i]}};
            flush(alone, *query.filter.rows);
            continue;
        }
        if (batch.vectors + vectors_of(query) > batch.max_vectors) flush(batch, all_rows);
        batch.queries.push_back(&query);
        batch.answers.push_back(&answers[i]);
        batch.vectors += vectors_of(query);
    }
    flush(plane, all_rows);
    flush(scan, all_rows);
    return answers;
}

/// The rows of the shortest list that all eligible rows are in, within the query's range, if there
/// is one that is short enough.
std::optional<std::span<const Row>> CpuEngine::listed_rows(const Query& query) const {
    if (query.filter.within == 0) return std::nullopt;
    const std::size_t list = lists_->shortest(query.filter.within);
    const std::size_t most = std::min(kMaxShortList, model_.rows() / kListedShare + 1);
    if (lists_->count(list) > most) return std::nullopt;
    const std::span<const Row> rows = lists_->short_list(list);
    const RowRange range = query.filter.rows.value_or(RowRange{0, model_.rows()});
    const auto first = std::ranges::lower_bound(rows, range.first);
    return std::span(first, std::lower_bound(first, rows.end(), range.last));
}

void CpuEngine::run_plane(std::span<const Query* const> queries, RowRange range,
                          std::span<Answer* const> answers) {
    const std::size_t threads = pool_.size();
    if (queries.size() < threads * kMinShare)
        return plane_pass_->run(queries, range, answers, pool_);
    const PlanePass& pass = fine_pass_ ? *fine_pass_ : *plane_pass_;
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
