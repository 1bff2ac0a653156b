#include "client/eval/correlation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace gloved::client {
namespace {

double mean(std::span<const double> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0) /
           static_cast<double>(numbers.size());
}

bool constant(std::span<const double> numbers) {
    return std::ranges::all_of(numbers, [&](double number) { return number == numbers.front(); });
}

}  // namespace

double pearson(std::span<const double> a, std::span<const double> b) {
    assert(a.size() == b.size());
    // The mean of equal numbers may be rounded, which would look like variance.
    if (a.size() < 2 || constant(a) || constant(b)) return std::numeric_limits<double>::quiet_NaN();
    const double mean_a = mean(a);
    const double mean_b = mean(b);
    double ab = 0;
    double aa = 0;
    double bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double from_a = a[i] - mean_a;
        const double from_b = b[i] - mean_b;
        ab += from_a * from_b;
        aa += from_a * from_a;
        bb += from_b * from_b;
    }
    return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);
}

std::vector<double> average_ranks(std::span<const double> numbers) {
    std::vector<std::size_t> order(numbers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t i, std::size_t j) { return numbers[i] < numbers[j]; });
    std::vector<double> ranks(numbers.size());
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin + 1;
        while (end < order.size() && numbers[order[end]] == numbers[order[begin]]) ++end;
        // The places begin + 1 to end, on average.
        const double rank = static_cast<double>(begin + 1 + end) / 2;
        for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
        begin = end;
    }
    return ranks;
}

double spearman(std::span<const double> a, std::span<const double> b) {
    return pearson(average_ranks(a), average_ranks(b));
}

}  // namespace gloved::client
