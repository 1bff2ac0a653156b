#include "kernels/cpu/candidates.hpp"

#include <algorithm>

namespace gloved::kernels::cpu {

void CandidateList::prune(std::vector<Candidate>& candidates, std::size_t k, Threshold& threshold) {
    if (candidates.size() > k) {
        const auto kth = candidates.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(candidates.begin(), kth, candidates.end(),
                         [](const Candidate& a, const Candidate& b) { return a.lower > b.lower; });
        threshold.raise(kth->lower);
    }
    const double least = threshold.get();
    std::erase_if(candidates, [least](const Candidate& candidate) { return candidate.upper < least; });
}

}  // namespace gloved::kernels::cpu
