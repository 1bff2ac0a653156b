// Correlation coefficients of two lists of numbers, Pearson's and Spearman's, for gloved-eval.
#pragma once

#include <span>
#include <vector>

namespace gloved::client {

/// Pearson's correlation coefficient of two lists of the same length, in float64, clamped to [−1,
/// 1]; NaN for fewer than two numbers or a constant list.
double pearson(std::span<const double> a, std::span<const double> b);

/// The ranks of numbers, from 1 for the smallest; equal numbers share their average rank.
std::vector<double> average_ranks(std::span<const double> numbers);

/// Spearman's correlation coefficient: Pearson's of the average ranks.
double spearman(std::span<const double> a, std::span<const double> b);

}  // namespace gloved::client
