#include "tools/bench/load_requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <random>

#include "cli/command_line.hpp"
#include "common/wire/reply.hpp"

namespace gloved::bench {
namespace {

constexpr std::array kKinds = {
    RequestKind{"near", "NEAR", 1, true},
    RequestKind{"nearvec", "NEARVEC", 0, true, true},
    RequestKind{"analogy", "ANALOGY", 3, true},
    RequestKind{"cosmul", "ANALOGY method=mul", 3, true},
    RequestKind{"rank", "RANK", 2},
    RequestKind{"sim", "SIM", 2},
    RequestKind{"dist", "DIST", 2},
    RequestKind{"vec", "VEC", 1},
    RequestKind{"odd", "ODD", 4},
    RequestKind{"matrix", "MATRIX", 20},
    RequestKind{"prefix", "PREFIX", 1, true},
    RequestKind{"has", "HAS", 1},
    RequestKind{"ping", "PING"},
};

constexpr std::uint64_t kMaxWeight = 1'000'000;

MixPart parse_part(std::string_view text) {
    const std::string_view name = text.substr(0, text.find('='));
    const auto* const kind = std::ranges::find(kKinds, name, &RequestKind::name);
    if (kind == kKinds.end()) {
        throw cli::WrongUsage(
            fmt::format("--mix: there is no '{}'; there are {}", name, mix_kinds()));
    }
    MixPart part{kind};
    if (name.size() < text.size()) {
        part.weight = cli::parse_count(fmt::format("--mix, {}", name), text.substr(name.size() + 1),
                                       1, kMaxWeight);
    }
    return part;
}

/// Appends random requests to a text.
class RequestWriter {
  public:
    explicit RequestWriter(const RequestOptions& options)
        : options_(options), random_(options.seed) {}

    /// Which part of the mix the next request belongs to, by weight.
    std::size_t choose_part() {
        std::uint64_t sum = 0;
        for (const MixPart& part : options_.mix) sum += part.weight;
        assert(sum > 0);  // parse_mix refuses weights of 0
        std::uint64_t left = random_() % sum;
        std::size_t part = 0;
        while (left >= options_.mix[part].weight) left -= options_.mix[part++].weight;
        return part;
    }

    void append(std::string& text, const RequestKind& kind) {
        text += kind.begin;
        if (kind.takes_k) fmt::format_to(std::back_inserter(text), " k={}", options_.k);
        for (std::size_t i = 0; i < kind.words; ++i) {
            text += ' ';
            text += wire::quote_word(any_of(options_.words));
        }
        if (kind.takes_vector) {
            text += ' ';
            text += any_of(options_.vectors);
        }
        text += '\n';
    }

  private:
    // Not std::uniform_int_distribution, whose numbers differ between standard libraries.
    const std::string& any_of(const std::vector<std::string>& list) {
        assert(!list.empty());
        return list[random_() % list.size()];
    }

    const RequestOptions& options_;
    std::mt19937_64 random_;
};

}  // namespace

std::string mix_kinds() {
    std::vector<std::string_view> names;
    names.reserve(kKinds.size());
    for (const RequestKind& kind : kKinds) names.push_back(kind.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<MixPart> parse_mix(std::string_view text) {
    std::vector<MixPart> mix;
    while (true) {
        const std::size_t comma = text.find(',');
        const MixPart part = parse_part(text.substr(0, comma));
        if (std::ranges::find(mix, part.kind, &MixPart::kind) != mix.end())
            throw cli::WrongUsage(fmt::format("--mix has '{}' twice", part.kind->name));
        mix.push_back(part);
        if (comma == std::string_view::npos) return mix;
        text.remove_prefix(comma + 1);
    }
}

bool needs_words(std::span<const MixPart> mix) {
    // The vectors are those of words.
    return std::ranges::any_of(
        mix, [](const MixPart& part) { return part.kind->words > 0 || part.kind->takes_vector; });
}

bool needs_vectors(std::span<const MixPart> mix) {
    return std::ranges::any_of(mix, [](const MixPart& part) { return part.kind->takes_vector; });
}

RequestPool::RequestPool(const RequestOptions& options) {
    assert(options.count > 0 && !options.mix.empty());
    RequestWriter writer(options);
    for (std::size_t i = 0; i < options.count; ++i) {
        const std::size_t part = writer.choose_part();
        starts_.push_back(text_.size());
        parts_.push_back(static_cast<std::uint8_t>(part));
        writer.append(text_, *options.mix[part].kind);
    }
    starts_.push_back(text_.size());
}

std::vector<std::size_t> choose_checked(const RequestPool& pool, std::size_t parts, double share) {
    std::vector<std::size_t> chosen;
    if (!(share > 0)) return chosen;
    // What is due of each part; the first request of each completes the first one.
    std::vector<double> due(parts, 1 - share);
    for (std::size_t i = 0; i < pool.size(); ++i) {
        double& owed = due[pool.part(i)];
        owed += share;
        // A little less than 1, since the sums are rounded.
        if (owed < 1 - 1e-9) continue;
        owed -= 1;
        chosen.push_back(i);
    }
    return chosen;
}

}  // namespace gloved::bench
