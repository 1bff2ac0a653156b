// What a batch will take, learnt from those before it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace gloved::daemon {

/// A batch of n vectors over all rows is predicted to take single + (n − 1) × further milliseconds. Both are moving
/// averages of what was measured. Not safe for concurrent use.
class CostModel {
  public:
    /// `first_guess_ms` is used until a single query has been measured.
    explicit CostModel(double first_guess_ms) : single_ms_(first_guess_ms), further_ms_(first_guess_ms / 32) {}

    double single_ms() const { return single_ms_; }
    /// What one more vector adds to a batch.
    double further_ms() const { return further_ms_; }

    /// A batch of `vectors` took `ms`.
    void learn(std::size_t vectors, double ms) {
        if (vectors == 0) return;
        if (vectors == 1) {
            single_ms_ = measured_ ? blend(single_ms_, ms) : ms;
            measured_ = true;
        } else {
            further_ms_ = blend(further_ms_, std::max(0.0, ms - single_ms_) / static_cast<double>(vectors - 1));
        }
    }

  private:
    static double blend(double old, double now) { return old + (now - old) / 8; }

    double single_ms_;
    double further_ms_;
    bool measured_ = false;
};

}  // namespace gloved::daemon
