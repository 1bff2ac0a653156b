// How well two lists of numbers agree.
#pragma once

#include <span>
#include <vector>

namespace gloved::client {

/// Pearson's correlation coefficient of two lists of the same length, in float64, clamped to [−1,
/// 1]; NaN for fewer than two, or where a list is constant.
double pearson(std::span<const double> a, std::span<const double> b);

/// The ranks of numbers, from 1 for the smallest; equal ones share the average of theirs.
std::vector<double> average_ranks(std::span<const double> numbers);

/// Spearman's: Pearson's of the ranks.
double spearman(std::span<const double> a, std::span<const double> b);

}  // namespace gloved::client
