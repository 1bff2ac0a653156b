#include "kernels/cpu/candidates.hpp"

#include <algorithm>

namespace gloved::kernels::cpu {
namespace {

/// Candidates that justify another thread for rescoring.
constexpr std::size_t kRescoreGrain = 512;

}  // namespace

void CandidateList::prune(std::vector<Candidate>& candidates, std::size_t k, Threshold& threshold) {
    if (candidates.size() > k) {
        const auto kth = candidates.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(candidates.begin(), kth, candidates.end(),
                         [](const Candidate& a, const Candidate& b) { return a.lower > b.lower; });
        threshold.raise(kth->lower);
    }
    const double min_upper = threshold.get();
    std::erase_if(candidates,
                  [min_upper](const Candidate& candidate) { return candidate.upper < min_upper; });
}

std::vector<Hit> best_hits(std::span<const Candidate> candidates, std::size_t k, double min_score,
                           ThreadPool& pool, const std::function<double(Row)>& canonical) {
    std::vector<Hit> hits(candidates.size());
    pool.for_ranges(hits.size(), kRescoreGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            hits[i] = {candidates[i].row, canonical(candidates[i].row)};
    });
    std::erase_if(hits, [&](const Hit& hit) { return !(hit.score >= min_score); });
    const std::size_t wanted = std::min(k, hits.size());
    std::partial_sort(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(wanted), hits.end(),
                      comes_before);
    hits.resize(wanted);
    return hits;
}

}  // namespace gloved::kernels::cpu
