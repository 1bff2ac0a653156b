// Counts of requests and connections, for STATS.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/histogram.hpp"

namespace gloved::daemon {

/// Numbers of verbs and of outcomes: answered, or one of the wire's error codes.
inline constexpr std::size_t kVerbs = static_cast<std::size_t>(wire::Verb::quit) + 1;
inline constexpr std::size_t kOutcomes = static_cast<std::size_t>(ErrorCode::internal) + 2;

/// Why the daemon closed a connection: its peer was too slow.
enum class CloseReason { slow_line, idle, unread };
inline constexpr std::size_t kCloseReasons = 3;

/// Connections since the start.
struct ConnectionCounts {
    std::uint64_t admitted = 0;
    std::uint64_t refused = 0;
    std::uint64_t refused_uid_share = 0;  ///< of them, because their user had too many
    std::array<std::uint64_t, kCloseReasons> closed{};

    void count(CloseReason reason) { ++closed[static_cast<std::size_t>(reason)]; }
    std::uint64_t count_of(CloseReason reason) const {
        return closed[static_cast<std::size_t>(reason)];
    }
};

/// Counts answers by verb and outcome, times by stage, and connections. On the loop thread.
class Statistics {
  public:
    /// A stage of requests that an engine's thread answers.
    struct Stage {
        std::string_view name;  ///< «wait», «compute», «deliver», «total»
        Histogram times;
    };

    /// Counts an answer. `verb`: none if the line could not be parsed.
    void count(std::optional<wire::Verb> verb, std::optional<ErrorCode> error);
    /// Records the times of an answer from an engine's thread when it is written.
    void record(const Times& times, Clock::time_point written);

    ConnectionCounts& connections() { return connections_; }
    const ConnectionCounts& connections() const { return connections_; }

    std::uint64_t answered() const;
    std::uint64_t refused() const;
    const std::array<Stage, 4>& stages() const { return stages_; }

    /// Calls `visit(verb, outcome, count)` for every count that is not 0, with the wire's names in
    /// lower case: «near», «answered», «unknown_word». The verb of lines that could not be parsed
    /// is «none».
    template <class Visit>
    void for_each_count(const Visit& visit) const {
        for (std::size_t verb = 0; verb <= kVerbs; ++verb) {
            for (std::size_t outcome = 0; outcome < kOutcomes; ++outcome) {
                const std::uint64_t count = counts_[verb][outcome];
                if (count != 0) visit(name_of_verb(verb), name_of_outcome(outcome), count);
            }
        }
    }

  private:
    static std::string name_of_verb(std::size_t verb);
    static std::string name_of_outcome(std::size_t outcome);

    // By verb, the last for lines that could not be parsed; by outcome, the first for answers.
    std::array<std::array<std::uint64_t, kOutcomes>, kVerbs + 1> counts_{};
    ConnectionCounts connections_;
    std::array<Stage, 4> stages_ = {
        {{"wait", {}}, {"compute", {}}, {"deliver", {}}, {"total", {}}}};
};

}  // namespace gloved::daemon
