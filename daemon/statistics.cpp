#include "daemon/statistics.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "common/wire/reply.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

void Statistics::count(std::optional<wire::Verb> verb, std::optional<ErrorCode> error) {
    std::size_t outcome = 0;
    // The wire reports other codes as «internal».
    if (error) outcome = 1 + static_cast<std::size_t>(std::min(*error, ErrorCode::internal));
    ++counts_[verb ? static_cast<std::size_t>(*verb) : kVerbs][outcome];
}

void Statistics::record(const Times& times, Clock::time_point written) {
    stages_[0].times.add(times.taken - times.arrived);
    stages_[1].times.add(times.computed - times.taken);
    stages_[2].times.add(written - times.computed);
    stages_[3].times.add(written - times.arrived);
}

std::uint64_t Statistics::answered() const {
    std::uint64_t sum = 0;
    for (const auto& outcomes : counts_) sum += outcomes[0];
    return sum;
}

std::uint64_t Statistics::refused() const {
    std::uint64_t sum = 0;
    for (const auto& outcomes : counts_) {
        for (std::size_t outcome = 1; outcome < kOutcomes; ++outcome) sum += outcomes[outcome];
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
