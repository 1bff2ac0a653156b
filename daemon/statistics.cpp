#include "daemon/statistics.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>

#include "common/wire/reply.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

void Statistics::count(const Asked& asked, std::optional<ErrorCode> error) {
    std::size_t outcome = 0;
    // The wire reports other codes as «internal».
    if (error) outcome = 1 + static_cast<std::size_t>(std::min(*error, ErrorCode::internal));
    const std::size_t verb = asked.verb ? static_cast<std::size_t>(*asked.verb) : kVerbs;
    ++counts_[asked.model.value_or(counts_.size() - 1)][verb][outcome];
}

void Statistics::record(const Times& times, Clock::time_point written) {
    stages_[0].times.add(times.taken - times.arrived);
    stages_[1].times.add(times.computed - times.taken);
    stages_[2].times.add(written - times.computed);
    stages_[3].times.add(written - times.arrived);
}

void Statistics::add(const Statistics& other) {
    for (std::size_t place = 0; place < counts_.size(); ++place) {
        for (std::size_t verb = 0; verb <= kVerbs; ++verb) {
            for (std::size_t outcome = 0; outcome < kOutcomes; ++outcome)
                counts_[place][verb][outcome] += other.counts_[place][verb][outcome];
        }
    }
    connections_.admitted += other.connections_.admitted;
    connections_.refused += other.connections_.refused;
    connections_.refused_uid_share += other.connections_.refused_uid_share;
    for (std::size_t reason = 0; reason < kCloseReasons; ++reason)
        connections_.closed[reason] += other.connections_.closed[reason];
    for (std::size_t i = 0; i < stages_.size(); ++i) stages_[i].times.add(other.stages_[i].times);
}

std::uint64_t Statistics::answered() const {
    std::uint64_t sum = 0;
    for (const Counts& counts : counts_) {
        for (const auto& outcomes : counts) sum += outcomes[0];
    }
    return sum;
}

std::uint64_t Statistics::refused() const {
    std::uint64_t sum = 0;
    for (const Counts& counts : counts_) {
        for (const auto& outcomes : counts)
            sum = std::accumulate(outcomes.begin() + 1, outcomes.end(), sum);
    }
    return sum;
}

std::string Statistics::name_of_verb(std::size_t verb) {
    if (verb == kVerbs) return "none";
    std::string name(wire::verb_name(static_cast<wire::Verb>(verb)));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

std::string Statistics::name_of_outcome(std::size_t outcome) {
    if (outcome == 0) return "answered";
    return std::string(wire::code_name(static_cast<ErrorCode>(outcome - 1)));
}

}  // namespace gloved::daemon
