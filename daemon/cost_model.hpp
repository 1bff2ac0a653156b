// CostModel: predicts how long a batch of queries takes, from the times of earlier batches.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>

namespace gloved::daemon {

/// Predicts the milliseconds that a batch takes, from its number of query vectors. Sizes from one
/// power of two to the next share one figure, since cost grows in steps. Beyond the largest size
/// that was tried, the next one is predicted at 1.5 times its figure (1.2 times that of one query),
/// each further one at twice the size before it. So batches grow step by step under load, without
/// leaps. Not safe for concurrent use.
class CostModel {
  public:
    /// Larger batches cost as much as one of this size.
    static constexpr std::size_t kMaxVectors = 4096;
    /// Classes of sizes: 1, 2, 3–4, 5–8, … 2,049–4,096.
    static constexpr std::size_t kSizes = 13;

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
                growth = kNextGrowth;
            } else {
                const double grown = predicted * std::exchange(growth, kGrowth);
                predicted = std::max(predicted, std::min(grown, next_measured(size)));
            }
        }
        return predicted;
    }

    /// Notes that a batch with this number of vectors took `ms`.
    void learn(std::size_t vectors, double ms) {
        if (vectors == 0) return;
        const std::size_t size = size_of(vectors);
        // One pass beside a busy processor may take ten times as long. Such a figure must not make
        // batches small. Nor does a batch take longer than a larger one.
        if (is_informed_) {
            const double larger = std::max(next_measured(size), ms_[size]);
            ms = std::min({ms, kMaxSurprise * predict_ms(vectors), larger});
        }
        is_informed_ = true;
        const bool first = size == 0 ? !single_measured_ : ms_[size] == 0;
        single_measured_ = single_measured_ || size == 0;
        ms_[size] = first ? ms : ms_[size] + (ms - ms_[size]) * kBlend;
        // One query takes no longer than several.
        if (!single_measured_) ms_[0] = std::min(ms_[0], ms);
        // Figures of larger sizes shrink: otherwise a size that was slow once would never be tried
        // again. One that has shrunk to kFirstGrowth times the figure of the size before is
        // forgotten: the size counts as untried, so that batches grow to it step by step.
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
    static constexpr double kNextGrowth = 1.5;
    static constexpr double kGrowth = 2;
    static constexpr double kBlend = 0.25;
    static constexpr double kFade = 0.995;
    static constexpr double kMaxSurprise = 2;  // cap on a sample, × the prediction

    /// The figure of the next larger size that was tried; infinity if there is none.
    double next_measured(std::size_t size) const {
        while (++size < ms_.size()) {
            if (ms_[size] != 0) return ms_[size];
        }
        return std::numeric_limits<double>::infinity();
    }

    /// The index in ms_: 0 for 1 vector, 1 for 2, 2 for 3–4, 3 for 5–8, …
    static std::size_t size_of(std::size_t vectors) {
        return static_cast<std::size_t>(std::bit_width(std::min(vectors, kMaxVectors) - 1));
    }

    std::array<double, kSizes> ms_{};  // by size_of; 0: never measured
    bool single_measured_ = false;
    bool is_informed_ = false;  // a batch was measured
};

}  // namespace gloved::daemon
