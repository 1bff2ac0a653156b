// LoadCounts: what the threads of a load count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/bench/latency_histogram.hpp"

namespace gloved::bench {

/// An answer that differs from the expected one.
struct WrongAnswer {
    std::string request;
    std::string expected;  ///< the whole reply
    std::string received;
};

/// What a worker counted.
struct LoadCounts {
    explicit LoadCounts(std::size_t parts)
        : latencies(parts), answers_in_time(parts), errors(parts) {}
    /// Counts an ERR reply to a request of a part of the mix.
    void add_error(std::size_t part, std::string_view code);
    /// Adds what `other` counted.
    void add(const LoadCounts& other);

    std::vector<LatencyHistogram> latencies;     ///< of OK replies, by part of the mix
    std::vector<std::uint64_t> answers_in_time;  ///< of these, those that came before the end
    std::vector<std::uint64_t> errors;           ///< ERR replies, by part of the mix
    std::vector<std::pair<std::string, std::uint64_t>> codes;  ///< ERR replies by code
    std::uint64_t checked = 0;                                 ///< compared replies
    std::uint64_t wrong = 0;
    std::optional<WrongAnswer> first_wrong;
    LatencyHistogram lateness;     ///< open loop: from when a request was due until it was sent
    std::uint64_t unsent = 0;      ///< open loop: due, but never sent
    std::uint64_t unanswered = 0;  ///< sent, but not answered when the worker gave up
};

}  // namespace gloved::bench
