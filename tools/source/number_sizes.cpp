#include "tools/source/number_sizes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace gloved::source {
namespace {

constexpr std::uint32_t kWithoutSign = 0x7FFF'FFFF;
constexpr std::size_t kZero = 128;
/// No sound number has them: denormal ones, and those of 1.7e38 or more, infinite or NaN.
constexpr std::size_t kTiny = 0;
constexpr std::size_t kHuge = 127;

constexpr std::size_t size_of(std::uint32_t bits) {
    bits &= kWithoutSign;
    return bits == 0 ? kZero : bits >> 24;
}
std::size_t size_at(const char* numbers, std::size_t i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, numbers + i * sizeof bits, sizeof bits);
    return size_of(bits);
}

/// What is usual before anything was read.
constexpr std::size_t kSmallest = size_of(std::bit_cast<std::uint32_t>(1e-12F));
constexpr std::size_t kLargest = size_of(std::bit_cast<std::uint32_t>(1e6F));
/// When this many were counted, all counts are halved.
constexpr std::uint32_t kMaxCounted = 4096;

/// The first numbers, where the rest of a word would stand, and others all over the vector.
constexpr std::size_t kFirst = 4;
constexpr std::size_t kSpread = 12;

template <class Function>
void for_some(std::size_t dim, Function function) {
    for (std::size_t i = 0; i < std::min(kFirst, dim); ++i) function(i);
    const std::size_t step = dim < kFirst + kSpread ? 1 : (dim - kFirst) / kSpread;
    const std::size_t end = std::min(dim, kFirst + kSpread * step);
    for (std::size_t i = kFirst; i < end; i += step) function(i);
}

}  // namespace

NumberSizes::NumberSizes() {
    std::fill(counts_.begin() + kSmallest, counts_.begin() + kLargest + 1, 1);
    counts_[kZero] = 1;
    add_up();
}

void NumberSizes::learn(const char* numbers, std::size_t dim) {
    for_some(dim, [&](std::size_t i) { ++counts_[size_at(numbers, i)]; });
    counts_[kTiny] = counts_[kHuge] = 0;
    if (total_ >= kMaxCounted) {
        for (std::uint32_t& count : counts_) count /= 2;
    }
    add_up();
}

void NumberSizes::add_up() {
    total_ = std::accumulate(counts_.begin(), counts_.end(), std::uint32_t{0});
    usual_sizes_ = 0;
    for (std::size_t size = 0; size < kSizes; ++size) {
        usual_[size] = counts_[size] != 0;
        if (usual_[size]) ++usual_sizes_;
    }
    usual_[' '] = false;
}

bool NumberSizes::some_are_usual(const char* numbers, std::size_t dim) const {
    bool usual = true;
    for_some(dim, [&](std::size_t i) { usual &= usual_[size_at(numbers, i)]; });
    return usual;
}

bool NumberSizes::all_are_usual(const char* numbers, std::size_t dim, std::size_t few) const {
    std::size_t unusual = 0;
    std::size_t others_than_zero = 0;
    for (std::size_t i = 0; i < dim; ++i) {
        const std::size_t size = size_at(numbers, i);
        if (size == ' ') return false;
        if (!usual_[size]) ++unusual;
        if (size != kZero) ++others_than_zero;
    }
    return unusual * few <= others_than_zero;
}

double NumberSizes::bits_over_random(const char* numbers, std::size_t dim) const {
    // An adaptive code: each size costs the logarithm of its share of what came before. One that
    // never came counts a little.
    constexpr double kNever = 1.0 / 1024;
    std::array<std::uint32_t, kSizes> counts = counts_;
    double total = total_ + kSizes * kNever;
    double bits = 0;
    for (std::size_t i = 0; i < dim; ++i) {
        std::uint32_t& count = counts[size_at(numbers, i)];
        bits += std::log2(total / (count + kNever)) - kRandomBits;
        if (&count == &counts[kTiny] || &count == &counts[kHuge]) continue;
        ++count;
        ++total;
    }
    return bits;
}

}  // namespace gloved::source
