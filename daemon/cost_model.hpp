// What a batch will take, learnt from those before it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace gloved::daemon {

/// Predicts the milliseconds of a pass over all rows from its number of vectors. Sizes are kept by
/// powers of two, since cost grows in steps: memory bounds small batches, arithmetic large ones,
/// and registers come in fixed widths. The first size that was never tried is taken for little more
/// than the next smaller one, those beyond it for twice as much each, so that load finds the best
/// size within a few batches and never by a leap. Not safe for concurrent use.
class CostModel {
  public:
    static constexpr std::size_t kMaxVectors = 256;

    /// `guess_ms` stands for a single query until one has been measured.
    explicit CostModel(double guess_ms) { ms_[0] = guess_ms; }

    double single_ms() const { return ms_[0]; }

    /// Never falls with growing `vectors`; 0 for none.
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

    /// A pass with that many vectors took `ms`.
    void learn(std::size_t vectors, double ms) {
        if (vectors == 0) return;
        const std::size_t size = size_of(vectors);
        const bool first = size == 0 ? !single_measured_ : ms_[size] == 0;
        single_measured_ = single_measured_ || size == 0;
        ms_[size] = first ? ms : ms_[size] + (ms - ms_[size]) * kBlend;
        // A larger size that once was slow, because the machine was busy, would never be tried
        // again if it were believed for ever. It is forgotten when it has faded to what an untried
        // one is taken for: a prediction below that, known from nothing, would let a batch leap
        // over all sizes.
        double smaller = ms_[0];
        for (std::size_t other = 1; other < ms_.size(); ++other) {
            if (other > size && ms_[other] != 0) {
                ms_[other] *= kFade;
                if (ms_[other] <= smaller * kFirstGrowth) ms_[other] = 0;
            }
            smaller = std::max(smaller, ms_[other]);
        }
    }

  private:
    static constexpr double kFirstGrowth = 1.2;
    static constexpr double kGrowth = 2;
    static constexpr double kBlend = 0.25;
    static constexpr double kFade = 0.995;

    /// 1, 2, 3–4, 5–8, …
    static std::size_t size_of(std::size_t vectors) {
        return static_cast<std::size_t>(std::bit_width(std::min(vectors, kMaxVectors) - 1));
    }

    std::array<double, 9> ms_{};  // by size_of; 0: never measured
    bool single_measured_ = false;
};

}  // namespace gloved::daemon
