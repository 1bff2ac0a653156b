// Measures what a GPU does by its own clock.
#pragma once

#include <array>

#include "common/result.hpp"
#include "kernels/cuda/runtime.hpp"

namespace gloved::museum {

/// A stream and the time of work on it.
struct Timer {
    kernels::cuda::Stream stream;
    std::array<kernels::cuda::Event, 2> events;

    /// Makes them on the current device. Error: device.
    Status create() {
        Status done = move_into(stream, kernels::cuda::Stream::create());
        for (kernels::cuda::Event& event : events) {
            if (done) done = move_into(event, kernels::cuda::Event::create());
        }
        return done;
    }

    /// Calls start(), which enqueues work on the stream, waits for that work, and returns its
    /// milliseconds. Errors: start's; device.
    template <class Start>
    Result<double> time(const Start& start) {
        Status done = events[0].record(stream);
        if (done) done = start();
        if (done) done = events[1].record(stream);
        if (done) done = events[1].synchronize();
        if (!done) return done.error();
        const auto ms = kernels::cuda::elapsed_ms(events[0], events[1]);
        if (!ms) return ms.error();
        return static_cast<double>(*ms);
    }
};

}  // namespace gloved::museum
