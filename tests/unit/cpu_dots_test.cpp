// The loops of every instruction set give the bits of the canonical dot product; BestHits keeps
// what a plain sort keeps.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/best_hits.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cpu/dots.hpp"
#include "kernels/engine.hpp"

namespace gloved::tests {
namespace {

using kernels::BestHits;
using kernels::Hit;
using kernels::cpu::DotKernel;
using kernels::cpu::QueryGroup;

constexpr std::size_t kRows = 9;  // two times four, and one

/// Rows that end where the process's memory ends: a loop that reads on is killed.
class LastRows {
  public:
    explicit LastRows(std::size_t floats) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const std::size_t bytes = (floats * sizeof(float) + page - 1) / page * page;
        size_ = bytes + page;
        memory_ =
            ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(memory_, MAP_FAILED);
        auto* const end = static_cast<std::byte*>(memory_) + bytes;
        EXPECT_EQ(::mprotect(end, page, PROT_NONE), 0);
        rows_ = std::span(reinterpret_cast<float*>(end) - floats, floats);
    }
    ~LastRows() { ::munmap(memory_, size_); }
    LastRows(const LastRows&) = delete;
    LastRows& operator=(const LastRows&) = delete;

    std::span<float> floats() const { return rows_; }

  private:
    void* memory_ = nullptr;
    std::size_t size_ = 0;
    std::span<float> rows_;
};

/// Numbers of all sizes, zeros of both signs, and where `damaged`, numbers that are not finite.
float number(std::mt19937_64& random, bool damaged) {
    switch (random() % 16) {
        case 0:
            return random() % 2 == 0 ? 0.0F : -0.0F;
        case 1:
            return std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7F800000U));
        case 2:
            if (damaged)
                return random() % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : INFINITY;
            [[fallthrough]];
        default:
            return std::normal_distribution<float>()(random);
    }
}

/// The bits of a number. All NaNs are one: no answer has any.
std::uint64_t bits_of(double value) {
    return std::isnan(value) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(value);
}

void expect_canonical_bits(const DotKernel& kernel, std::size_t dim, std::size_t count,
                           std::mt19937_64& random) {
    std::vector<kernels::QueryVector> queries(count);
    std::vector<const kernels::QueryVector*> pointers;
    for (auto& query : queries) {
        for (std::size_t i = 0; i < dim; ++i) query.values.push_back(number(random, false));
        pointers.push_back(&query);
    }
    const LastRows rows(kRows * dim);
    for (float& value : rows.floats()) value = number(random, dim % 3 == 0);
    const auto expected = [&](std::size_t r, std::size_t q) {
        return bits_of(
            kernels::canonical_dot(queries[q].values.data(), rows.floats().data() + r * dim, dim));
    };
    // Wrong numbers, so that a product that is not written differs.
    std::vector<double> dots(kRows * count, 1e300);
    kernel.dots_of_block(QueryGroup(pointers), rows.floats().data(), kRows, dim, dots.data());
    for (std::size_t q = 0; q < count; ++q) {
        for (std::size_t r = 0; r < kRows; ++r)
            ASSERT_EQ(bits_of(dots[q * kRows + r]), expected(r, q)) << "row " << r << ", " << q;
    }
    if (count > 1) return;
    std::vector<const float*> order;
    for (std::size_t r = kRows; r-- > 0;) order.push_back(rows.floats().data() + r * dim);
    for (std::size_t some = 0; some <= kRows; ++some) {
        std::ranges::fill(dots, 1e300);
        kernel.dots_of_rows(QueryGroup(pointers), order.data(), some, dim, dots.data());
        for (std::size_t r = 0; r < some; ++r)
            ASSERT_EQ(bits_of(dots[r]), expected(kRows - 1 - r, 0)) << r << " of " << some;
        for (std::size_t r = some; r < kRows; ++r) ASSERT_EQ(dots[r], 1e300) << r;
    }
}

TEST(Dots, OfEveryInstructionSetHaveTheCanonicalBits) {
    std::mt19937_64 random(7);
    for (const DotKernel* kernel : kernels::cpu::all_dot_kernels()) {
        if (!kernel->supported()) continue;
        SCOPED_TRACE(kernel->name);
        for (std::size_t dim = 1; dim <= 70; ++dim) {
            SCOPED_TRACE("dim " + std::to_string(dim));
            for (std::size_t count = 1; count <= kernel->width; ++count)
                expect_canonical_bits(*kernel, dim, count, random);
        }
        for (const std::size_t dim : {300U, 301U, 4096U})
            expect_canonical_bits(*kernel, dim, kernel->width, random);
    }
}

TEST(Dots, BecomeCanonicalScores) {
    std::mt19937_64 random(8);
    const auto double_of = [&](bool damaged) {
        return static_cast<double>(number(random, damaged));
    };
    for (const DotKernel* kernel : kernels::cpu::all_dot_kernels()) {
        if (!kernel->supported()) continue;
        SCOPED_TRACE(kernel->name);
        for (std::size_t rows = 0; rows <= 33; ++rows) {
            std::vector<double> dots;
            std::vector<double> norms;
            std::vector<std::uint64_t> wanted;
            const double query_norm = std::abs(double_of(false)) + 1e-3;
            for (std::size_t r = 0; r < rows; ++r) {
                dots.push_back(double_of(r % 5 == 0));
                norms.push_back(std::abs(double_of(r % 7 == 0)));
                wanted.push_back(bits_of(kernels::score_from_dot(dots[r], query_norm, norms[r])));
            }
            dots.push_back(1e300);
            kernel->cosines(dots.data(), norms.data(), rows, query_norm);
            for (std::size_t r = 0; r < rows; ++r)
                ASSERT_EQ(bits_of(dots[r]), wanted[r]) << r << " of " << rows;
            ASSERT_EQ(dots[rows], 1e300);
        }
    }
}

TEST(Dots, TheLastLoopRunsEverywhere) {
    const auto loops = kernels::cpu::all_dot_kernels();
    ASSERT_FALSE(loops.empty());
    EXPECT_EQ(loops.back()->name, "baseline");
    EXPECT_TRUE(loops.back()->supported());
}

/// Hits in the order of rows, with few different scores, so that many are equal.
std::vector<Hit> some_hits(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Hit> hits;
    for (std::size_t row = 0; row < count; ++row) {
        hits.push_back({static_cast<kernels::Row>(row),
                        static_cast<double>(random() % (count / 3 + 1)) / 100 - 1});
    }
    return hits;
}

std::vector<Hit> best_of(std::vector<Hit> hits, std::size_t k, double min_score) {
    std::erase_if(hits, [&](const Hit& hit) { return hit.score < min_score; });
    std::ranges::sort(hits, kernels::comes_before);
    hits.resize(std::min(k, hits.size()));
    return hits;
}

TEST(BestHits, AreThoseOfAPlainSort) {
    constexpr double kAny = -std::numeric_limits<double>::infinity();
    for (const std::size_t count : {0U, 1U, 2U, 100U, 5000U}) {
        for (const std::size_t k : {1U, 2U, 10U, 99U, 100U, 101U, 2048U, 100'000U}) {
            for (const double min_score : {kAny, -0.5, 1e9}) {
                auto hits = some_hits(count, count + k);
                const auto wanted = best_of(hits, k, min_score);
                std::ranges::shuffle(hits, std::mt19937_64(k));
                BestHits best(k, min_score);
                for (std::size_t at = 0; at < hits.size(); at += 7)
                    best.add(std::span(hits).subspan(at, std::min<std::size_t>(7, count - at)));
                // As many rows reach the threshold as it promises.
                EXPECT_LE(best.threshold(), wanted.size() == k ? wanted.back().score : min_score);
                EXPECT_EQ(best.take(), wanted) << count << " hits, k=" << k << ", " << min_score;
            }
        }
    }
}

TEST(BestHits, RaiseTheThresholdAsSoonAsThereAreK) {
    BestHits best(3, -1);
    const std::vector<Hit> hits = {{1, 0.3}, {2, 0.5}, {3, 0.4}, {4, 0.6}};
    best.add(std::span(hits).first(2));
    EXPECT_EQ(best.threshold(), -1);
    best.add(std::span(hits).subspan(2, 1));
    EXPECT_EQ(best.threshold(), 0.3);
    best.add(std::span(hits).subspan(3, 1));
    EXPECT_EQ(best.threshold(), 0.4);
    best.raise(0.2);
    EXPECT_EQ(best.threshold(), 0.4);
    best.raise(0.45);
    EXPECT_EQ(best.threshold(), 0.45);
}

TEST(BestHits, LeaveNaNOut) {
    BestHits best(2, -std::numeric_limits<double>::infinity());
    const std::vector<Hit> hits = {{1, std::numeric_limits<double>::quiet_NaN()}, {2, -1.0}};
    best.add(hits);
    EXPECT_EQ(best.take(), (std::vector<Hit>{{2, -1.0}}));
}

TEST(BestHits, MayBeAddedByManyThreads) {
    const auto hits = some_hits(40'000, 3);
    const auto wanted = best_of(hits, 64, -2);
    BestHits best(64, -2);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::size_t at = thread; at < hits.size(); at += 4)
                best.add(std::span(hits).subspan(at, 1));
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(best.take(), wanted);
}

}  // namespace
}  // namespace gloved::tests
