// CostModel: predicts how long a batch of queries takes, from the times of earlier batches.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace gloved::daemon {

/// Predicts the milliseconds that a batch takes, from its number of query vectors. Sizes from one
/// power of two to the next share one figure, since cost grows in steps. The smallest size that was
/// not tried yet is predicted at 1.2 times the size before it, each further one at twice the size
/// before it. So batches grow step by step under load, without leaps. Not safe for concurrent use.
class CostModel {
  public:
    /// Larger batches cost as much as one of this size.
    static constexpr std::size_t kMaxVectors = 256;

    /// `guess_ms`: predicted for a single query until one was measured.
    explicit CostModel(double guess_ms) { ms_[0] = guess_ms; }

    double single_ms() const { return ms_[0]; }

    /// The milliseconds of a batch with this number of vectors; 0 for none. Never less than for a
    /// smaller number.
    double predict_ms(std::size_t vectors) const {
        if (vectors == 0) return 0;
        double predicted = ms_[0];
        double growth = kFirstGrowth;
        for (std::size_t size = 1; size <= size_of(vectors); ++size) {
            if (ms_[size] != 0) {
                predicted = std::max(predicted, ms_[size]);
            } else {
                predicted *= growth;
                growth = kGrowth;
            }
        }
        return predicted;
    }

    /// Notes that a batch with this number of vectors took `ms`.
    void learn(std::size_t vectors, double ms) {
        if (vectors == 0) return;
        const std::size_t size = size_of(vectors);
        const bool first = size == 0 ? !single_measured_ : ms_[size] == 0;
        single_measured_ = single_measured_ || size == 0;
        ms_[size] = first ? ms : ms_[size] + (ms - ms_[size]) * kBlend;
        // Figures of larger sizes shrink: otherwise a size that was slow once would never be tried
        // again. At kFirstGrowth times the figure before, the size is untried again: a lower figure
        // would let batches leap.
        double before = ms_[0];
        for (std::size_t other = 1; other < ms_.size(); ++other) {
            if (other > size && ms_[other] != 0) {
                ms_[other] *= kFade;
                if (ms_[other] <= before * kFirstGrowth) ms_[other] = 0;
            }
            before = std::max(before, ms_[other]);
        }
    }

  private:
    static constexpr double kFirstGrowth = 1.2;
    static constexpr double kGrowth = 2;
    static constexpr double kBlend = 0.25;
    static constexpr double kFade = 0.995;

    /// The index in ms_: 0 for 1 vector, 1 for 2, 2 for 3–4, 3 for 5–8, …
    static std::size_t size_of(std::size_t vectors) {
        return static_cast<std::size_t>(std::bit_width(std::min(vectors, kMaxVectors) - 1));
    }

    std::array<double, 9> ms_{};  // by size_of; 0: never measured
    bool single_measured_ = false;
};

}  // namespace gloved::daemon
