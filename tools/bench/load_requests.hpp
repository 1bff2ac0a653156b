// The requests of a load: which kinds, in which proportion, and their lines, rendered beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::bench {

/// How requests of one kind look: «<begin> k=<k> <words or vector>».
struct RequestKind {
    std::string_view name;   ///< as in a mix: a verb in lower case, or «cosmul»
    std::string_view begin;  ///< the verb, and options if any
    std::size_t words = 0;   ///< how many random words follow
    bool takes_k = false;
    bool takes_vector = false;
};

/// One kind's share of a load: `weight` of the sum of all weights.
struct MixPart {
    const RequestKind* kind;
    std::uint64_t weight = 1;
};

/// The names of the kinds that a load can ask: «near, sim, …».
std::string mix_kinds();

/// Parses the value of --mix, such as «near=8,sim=1,ping»: kinds with weights from 1 to 1000000,
/// each kind once. Without a weight it is 1. Throws cli::WrongUsage.
std::vector<MixPart> parse_mix(std::string_view text);

/// Whether a request of `mix` has words.
bool needs_words(std::span<const MixPart> mix);
/// Whether a request of `mix` has the numbers of a vector.
bool needs_vectors(std::span<const MixPart> mix);

/// What a load asks for.
struct RequestOptions {
    std::vector<MixPart> mix;
    std::size_t k = 10;                  ///< hits per answer
    std::size_t count = 0;               ///< of requests
    std::uint64_t seed = 1;              ///< the same seed gives the same requests
    std::vector<std::string> words{};    ///< to ask for; not empty if needs_words
    std::vector<std::string> vectors{};  ///< lines of VEC; not empty if needs_vectors
};

/// Request lines, one after the other in one text, so that neighbours are sent by one call.
class RequestPool {
  public:
    /// Renders random requests.
    explicit RequestPool(const RequestOptions& options);

    std::size_t size() const { return parts_.size(); }
    /// The lines of the requests from `first` to `last` − 1; first <= last <= size().
    std::string_view lines(std::size_t first, std::size_t last) const {
        return std::string_view(text_).substr(starts_[first], starts_[last] - starts_[first]);
    }
    /// Which part of the mix a request belongs to, as an index.
    std::size_t part(std::size_t request) const { return parts_[request]; }

  private:
    std::string text_;
    std::vector<std::size_t> starts_;  // of each line in text_, and the end
    std::vector<std::uint8_t> parts_;
};

/// Chooses a `share` of the requests of every part of the mix, evenly spread, at least one of each
/// part. Returns them in ascending order; none if `share` is 0.
std::vector<std::size_t> choose_checked(const RequestPool& pool, std::size_t parts, double share);

}  // namespace gloved::bench
