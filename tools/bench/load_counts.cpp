#include "tools/bench/load_counts.hpp"

namespace gloved::bench {
namespace {

void add_code(LoadCounts& counts, std::string_view code, std::uint64_t replies) {
    for (auto& [known, count] : counts.codes) {
        if (known != code) continue;
        count += replies;
        return;
    }
    counts.codes.emplace_back(code, replies);
}

}  // namespace

void LoadCounts::add_error(std::size_t part, std::string_view code) {
    ++errors[part];
    add_code(*this, code, 1);
}

void LoadCounts::add(const LoadCounts& other) {
    for (std::size_t i = 0; i < latencies.size(); ++i) {
        latencies[i].add(other.latencies[i]);
        answers_in_time[i] += other.answers_in_time[i];
        errors[i] += other.errors[i];
    }
    for (const auto& [code, count] : other.codes) add_code(*this, code, count);
    checked += other.checked;
    wrong += other.wrong;
    if (!first_wrong) first_wrong = other.first_wrong;
    lateness.add(other.lateness);
    unsent += other.unsent;
    unanswered += other.unanswered;
}

}  // namespace gloved::bench
