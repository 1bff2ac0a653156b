// LogBuckets: the buckets of a histogram that is right to a fixed share of each value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gloved {

/// Divides the values below 2^`max_power` into buckets: one for each below 2^`sub_bits`, then
/// 2^`sub_bits` from each power of two to the next. So a bucket's end exceeds its values by a share
/// of 2^−`sub_bits` at most.
template <unsigned sub_bits, unsigned max_power>
struct LogBuckets {
    static constexpr std::size_t kSub = std::size_t{1} << sub_bits;
    static constexpr std::size_t kCount = (max_power - sub_bits + 1) * kSub;

    /// The bucket of `value`, which is below 2^max_power.
    static std::size_t bucket_of(std::uint64_t value) {
        if (value < kSub) return static_cast<std::size_t>(value);
        const auto octave = static_cast<unsigned>(std::bit_width(value)) - 1;
        const std::size_t sub = static_cast<std::size_t>(value >> (octave - sub_bits)) - kSub;
        return (octave - sub_bits + 1) * kSub + sub;
    }

    /// The largest value of a bucket.
    static std::uint64_t last_of(std::size_t bucket) {
        if (bucket < kSub) return bucket;
        const std::size_t octave = bucket / kSub + sub_bits - 1;
        const std::uint64_t first = std::uint64_t{kSub + bucket % kSub} << (octave - sub_bits);
        return first + (std::uint64_t{1} << (octave - sub_bits)) - 1;
    }
};

}  // namespace gloved
