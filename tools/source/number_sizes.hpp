// NumberSizes: which sizes the numbers of a binary source have, learned from the records that were
// read. Bytes that are read in the wrong place are numbers of any size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gloved::source {

/// All functions take numbers as they stand in the source: float32, not aligned. At first, 0 and
/// 1e-12 to 1e6 are usual.
class NumberSizes {
  public:
    NumberSizes();

    /// The bits of a random byte but for its sign.
    static constexpr double kRandomBits = 7;

    /// Counts the sizes of some of a record's numbers. What was counted long ago weighs less.
    void learn(const char* numbers, std::size_t dim);
    /// Whether so few sizes are usual that numbers of any size hardly have them all.
    bool tell_at_a_glance() const { return usual_sizes_ <= kSizes / 3; }
    /// Whether some of the numbers, the first four among them, have sizes that were counted before.
    /// A number whose highest byte is a blank is not usual: a longer word may end there.
    bool some_are_usual(const char* numbers, std::size_t dim) const;
    /// The same of all numbers, but for one in `few` that are not 0. No number whose highest byte
    /// is a blank is among them.
    bool all_are_usual(const char* numbers, std::size_t dim, std::size_t few) const;
    /// How many bits these sizes need, over kRandomBits for each: below 0 for usual ones. What
    /// occurs again among these numbers needs less, as in a row unlike all others.
    double bits_over_random(const char* numbers, std::size_t dim) const;

  private:
    /// By a number's highest byte without its sign, thus in steps of a factor 4; the last is 0.
    static constexpr std::size_t kSizes = 129;

    /// Sets what follows from counts_.
    void add_up();

    std::array<std::uint32_t, kSizes> counts_{};
    std::uint32_t total_ = 0;
    std::array<bool, kSizes> usual_{};
    std::size_t usual_sizes_ = 0;
};

}  // namespace gloved::source
