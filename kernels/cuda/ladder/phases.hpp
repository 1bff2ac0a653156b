// Where the time of a search on the device goes, by events between its phases.
#pragma once

#include <array>
#include <cstddef>

#include "common/result.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/cuda/runtime.hpp"

namespace gloved::kernels::ladder {

/// Four events, recorded only in searches that are to be timed: an event between two kernels costs
/// about a microsecond.
class Phases {
  public:
    enum Border : std::size_t { kDotBegins, kDotEnds, kFirstMergeEnds, kMergeSortEnds, kBorders };

    static Result<Phases> create();

    /// Starts a search.
    void begin(bool timed) { timed_ = timed; }
    Status mark(Border border, const cuda::Stream& stream) const {
        return timed_ ? events_[border].record(stream) : Status();
    }
    /// Milliseconds between two borders of a timed search that have both been passed.
    Result<double> between(Border from, Border to) const;
    /// Fills in all three phases.
    Status read(RungTimes& times) const;

  private:
    bool timed_ = false;
    std::array<cuda::Event, kBorders> events_;
};

}  // namespace gloved::kernels::ladder
