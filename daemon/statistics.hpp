// Statistics: counts of answers and connections, and times of requests, for STATS.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/histogram.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Number of verbs, and of outcomes of a request: answered, or one of the wire's error codes.
inline constexpr std::size_t kVerbs = static_cast<std::size_t>(wire::Verb::quit) + 1;
inline constexpr std::size_t kOutcomes = static_cast<std::size_t>(ErrorCode::internal) + 2;

/// Why the daemon closed a connection: its peer was too slow.
enum class CloseReason { slow_line, idle, unread };
inline constexpr std::size_t kCloseReasons = 3;

/// Numbers of connections since the start.
struct ConnectionCounts {
    Tally<std::uint64_t> admitted;
    Tally<std::uint64_t> refused;
    Tally<std::uint64_t> refused_uid_share;  ///< of the refused: their user had too many
    std::array<Tally<std::uint64_t>, kCloseReasons> closed;  ///< by CloseReason

    void count(CloseReason reason) { ++closed[static_cast<std::size_t>(reason)]; }
    std::uint64_t count_of(CloseReason reason) const {
        return closed[static_cast<std::size_t>(reason)];
    }
};

/// What a request asked for, and of which model: its place in Settings::models, nullopt if it asked
/// none. `verb`: nullopt if the line could not be parsed.
struct Asked {
    std::optional<wire::Verb> verb;
    std::optional<std::size_t> model = std::nullopt;
};

/// Whether requests with the verb are about a model's words.
constexpr bool is_about_model(wire::Verb verb) { return verb <= wire::Verb::has; }

/// Counts answers by model, verb and outcome, times by stage, and connections. One thread may count
/// while others read.
class Statistics {
  public:
    /// A stage of a request about a model, and how long it took each request.
    struct Stage {
        std::string_view name;  ///< «wait», «compute», «deliver», «total»
        Histogram times;
    };

    explicit Statistics(std::size_t models) : counts_(models + 1) {}

    /// Counts an answer. `error`: nullopt for an OK.
    void count(const Asked& asked, std::optional<ErrorCode> error);
    /// Records the times of an answer about a model. `written`: when its last byte was.
    void record(const Times& times, Clock::time_point written);

    /// Adds what another one has counted.
    void add(const Statistics& other);

    ConnectionCounts& connections() { return connections_; }
    const ConnectionCounts& connections() const { return connections_; }

    /// Number of OK answers, and of ERR answers.
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
                std::uint64_t count = 0;
                for (const Counts& of_model : counts_) count += of_model[verb][outcome];
                if (count != 0) visit(name_of_verb(verb), name_of_outcome(outcome), count);
            }
        }
    }
    /// Calls `visit(place, verb, outcome, count)` for every count that may become more than 0, with
    /// the same names. `place`: the model's; the number of models for requests that ask none.
    template <class Visit>
    void for_each_series(const Visit& visit) const {
        for (std::size_t place = 0; place < counts_.size(); ++place) {
            const bool is_model = place + 1 < counts_.size();
            for (std::size_t verb = 0; verb <= kVerbs; ++verb) {
                const bool usual = is_about_model(static_cast<wire::Verb>(verb)) == is_model;
                for (std::size_t outcome = 0; outcome < kOutcomes; ++outcome) {
                    const std::uint64_t count = counts_[place][verb][outcome];
                    if (usual || count != 0)
                        visit(place, name_of_verb(verb), name_of_outcome(outcome), count);
                }
            }
        }
    }

  private:
    static std::string name_of_verb(std::size_t verb);
    static std::string name_of_outcome(std::size_t outcome);

    // [verb][outcome]. The last verb stands for lines that could not be parsed, outcome 0 for OK.
    using Counts = std::array<std::array<Tally<std::uint64_t>, kOutcomes>, kVerbs + 1>;

    std::vector<Counts> counts_;  // of each model, and of requests about none
    ConnectionCounts connections_;
    std::array<Stage, 4> stages_ = {
        {{"wait", {}}, {"compute", {}}, {"deliver", {}}, {"total", {}}}};
};

}  // namespace gloved::daemon
