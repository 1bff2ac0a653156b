// What STATS tells of the requests.
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

/// How many verbs there are, and how many outcomes: answered, or one of the wire's error codes.
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

/// Counts answers by verb and outcome, and times by stage. Of the loop thread.
class Statistics {
  public:
    /// The stages of a request that an engine's thread answers.
    struct Stage {
        std::string_view name;  ///< «wait», «compute», «deliver», «total»
        Histogram times;
    };

    /// An answer is complete. `verb`: none where the line could not be parsed.
    void count(std::optional<wire::Verb> verb, std::optional<ErrorCode> error);
    /// All of an answer from an engine's thread is written now.
    void record(const Times& times, Clock::time_point written);

    ConnectionCounts& connections() { return connections_; }
    const ConnectionCounts& connections() const { return connections_; }

    std::uint64_t answered() const;
    std::uint64_t refused() const;
    const std::array<Stage, 4>& stages() const { return stages_; }

    /// Calls `tell(verb, outcome, count)` for every count that is not 0, all names as on the wire
    /// but in lower case: «near», «answered», «unknown_word»; a line that could not be parsed has
    /// the verb «none».
    template <class Tell>
    void each_count(const Tell& tell) const {
        for (std::size_t verb = 0; verb <= kVerbs; ++verb) {
            for (std::size_t outcome = 0; outcome < kOutcomes; ++outcome) {
                const std::uint64_t count = counts_[verb][outcome];
                if (count != 0) tell(name_of_verb(verb), name_of_outcome(outcome), count);
            }
        }
    }

  private:
    static std::string name_of_verb(std::size_t verb);
    static std::string name_of_outcome(std::size_t outcome);

    // By verb, the last one for lines that are none; by outcome, the first one for answers.
    std::array<std::array<std::uint64_t, kOutcomes>, kVerbs + 1> counts_{};
    ConnectionCounts connections_;
    std::array<Stage, 4> stages_ = {
        {{"wait", {}}, {"compute", {}}, {"deliver", {}}, {"total", {}}}};
};

}  // namespace gloved::daemon
