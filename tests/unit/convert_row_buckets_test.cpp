// Rows come out of the buckets in order, each with its vector, whatever way they went in.
#include "common/result.hpp"
#include "tools/convert/row_buckets.hpp"
#include "tools/convert/spool.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::convert {
namespace {

constexpr std::size_t kDim = 3;
constexpr std::size_t kBatchRows = 500;
constexpr std::size_t kBatchLines = kBatchRows + 7;  // some lines hold no row

std::vector<float> vector_of(std::uint64_t line) {
    return {static_cast<float>(line), 0.5F, -static_cast<float>(line)};
}

/// A source of these keys, one a line but for the last lines of each batch.
std::vector<source::Batch> batches_of(const std::vector<std::string>& keys) {
    std::vector<source::Batch> batches;
    for (std::size_t at = 0; at < keys.size(); at += kBatchRows) {
        source::Batch batch;
        batch.sequence = batches.size();
        batch.first_line = batches.size() * kBatchLines;
        batch.lines = kBatchLines;
        batch.text_bytes = 40 * kBatchRows;
        for (std::size_t i = at; i < std::min(keys.size(), at + kBatchRows); ++i) {
            batch.keys += keys[i];
            batch.key_ends.push_back(batch.keys.size());
            batch.line_numbers.push_back(i - at);
            const auto vector = vector_of(batch.first_line + i - at);
            batch.values.insert(batch.values.end(), vector.begin(), vector.end());
        }
        batches.push_back(std::move(batch));
    }
    return batches;
}

struct Outcome {
    std::vector<std::string> keys;
    std::vector<std::uint64_t> lines;
    std::size_t buckets = 0;
    std::size_t largest_bucket = 0;  // rows
    std::size_t buckets_of_one = 0;  // row
    std::set<std::pair<std::uint64_t, std::uint64_t>> dropped;
    std::uint64_t dropped_count = 0;
    std::uint64_t file_bytes = 0;
};

struct Settings {
    std::size_t bucket_bytes = 1 << 16;
    std::uint64_t index_bytes = 1 << 20;
    std::uint64_t resident_bytes = 1 << 20;
    source::Duplicates rule = source::Duplicates::first;
    bool backwards = false;  // the last batch is added first
    std::size_t threads = 1;
};

Outcome put_in_order(const std::vector<std::string>& keys, const Settings& settings) {
    const tests::TempDir directory;
    auto fd = open_directory(directory.path());
    EXPECT_TRUE(fd);
    Spool spool(fd->get(), "spool", directory.path(), settings.resident_bytes);
    EXPECT_TRUE(spool.open());
    auto batches = batches_of(keys);
    RowBuckets buckets(spool, settings.bucket_bytes, settings.index_bytes, 40 * keys.size());
    buckets.set_dim(kDim);
    if (settings.backwards) {
        for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) buckets.add(*batch);
    } else {
        std::atomic<std::size_t> next = 0;
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < settings.threads; ++i) {
            threads.emplace_back([&] {
                for (std::size_t at = next++; at < batches.size(); at = next++)
                    buckets.add(batches[at]);
            });
        }
    }
    for (const source::Batch& batch : batches) EXPECT_TRUE(buckets.commit(batch));
    const std::atomic<bool> stop = false;
    EXPECT_TRUE(buckets.seal(stop));
    EXPECT_EQ(buckets.rows(), keys.size());
    std::set<std::uint32_t> ordinals;

    Outcome outcome;
    outcome.buckets = buckets.size();
    outcome.file_bytes = spool.file_bytes();
    EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "the spool's file has a name";
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        DroppedRows dropped;
        const auto sorted = buckets.sort(i, settings.rule, dropped);
        EXPECT_TRUE(sorted);
        const auto loaded = buckets.load(i);
        EXPECT_TRUE(loaded);
        EXPECT_EQ(loaded->kept, sorted->kept);
        EXPECT_EQ(loaded->keys.bytes, sorted->keys.bytes);
        EXPECT_EQ(loaded->ordinals, sorted->ordinals);
        std::vector<float> vectors(loaded->kept.size() * kDim);
        EXPECT_TRUE(buckets.gather(i, *loaded, vectors));
        outcome.largest_bucket = std::max(outcome.largest_bucket, loaded->ordinals.size());
        if (loaded->ordinals.size() == 1) ++outcome.buckets_of_one;
        for (std::size_t row = 0; row < loaded->kept.size(); ++row) {
            const auto line = static_cast<std::uint64_t>(vectors[row * kDim]);
            outcome.keys.emplace_back(loaded->keys[loaded->kept[row]]);
            outcome.lines.push_back(line);
            const std::uint32_t ordinal = loaded->ordinals[loaded->kept[row]];
            EXPECT_EQ(ordinal, line / kBatchLines * kBatchRows + line % kBatchLines);
            EXPECT_TRUE(ordinals.insert(ordinal).second);
            const std::vector<float> vector(vectors.data() + row * kDim,
                                            vectors.data() + (row + 1) * kDim);
            EXPECT_EQ(vector, vector_of(line)) << "line " << line;
        }
        outcome.dropped_count += dropped.count();
        for (const DroppedRow& row : dropped.listed())
            outcome.dropped.insert({row.line, row.kept_line});
    }
    return outcome;
}

/// What must come out, by a way that shares nothing with the other.
void expect_order(const Outcome& outcome, const std::vector<std::string>& keys,
                  source::Duplicates rule) {
    std::map<std::string, std::vector<std::uint64_t>> lines;
    for (std::size_t i = 0; i < keys.size(); ++i)
        lines[keys[i]].push_back(i / kBatchRows * kBatchLines + i % kBatchRows);
    std::vector<std::string> sorted;
    std::vector<std::uint64_t> kept;
    std::set<std::pair<std::uint64_t, std::uint64_t>> dropped;
    for (const auto& [key, of_key] : lines) {
        sorted.push_back(key);
        kept.push_back(rule == source::Duplicates::last ? of_key.back() : of_key.front());
        for (const std::uint64_t line : of_key) {
            if (line != kept.back()) dropped.insert({line, kept.back()});
        }
    }
    EXPECT_EQ(outcome.keys, sorted);
    EXPECT_EQ(outcome.lines, kept);
    EXPECT_EQ(outcome.dropped_count, dropped.size());
    // A bucket lists its first ones.
    for (const auto& row : outcome.dropped) EXPECT_TRUE(dropped.contains(row));
    if (dropped.size() <= source::kListedDuplicates) {
        EXPECT_EQ(outcome.dropped, dropped);
    }
}

std::vector<std::string> random_keys(std::size_t count, std::size_t distinct) {
    std::mt19937_64 random(11);
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < count; ++i)
        keys.push_back("key" + std::to_string(random() % distinct * 7919));
    return keys;
}

TEST(RowBuckets, RandomKeysWithDuplicates) {
    const auto keys = random_keys(20000, 15000);
    for (const source::Duplicates rule : {source::Duplicates::first, source::Duplicates::last}) {
        const Outcome outcome = put_in_order(keys, {.rule = rule});
        expect_order(outcome, keys, rule);
        EXPECT_GT(outcome.buckets, 10U);
    }
}

TEST(RowBuckets, FromSeveralThreadsAndInAnyOrder) {
    const auto keys = random_keys(20000, 15000);
    expect_order(put_in_order(keys, {.threads = 4}), keys, source::Duplicates::first);
    expect_order(put_in_order(keys, {.backwards = true}), keys, source::Duplicates::first);
}

TEST(RowBuckets, FromTheFileAloneAndFromMemoryAlone) {
    const auto keys = random_keys(20000, 15000);
    const Outcome from_file = put_in_order(keys, {.resident_bytes = 4096});
    const Outcome from_memory = put_in_order(keys, {.resident_bytes = 64 << 20});
    expect_order(from_file, keys, source::Duplicates::first);
    expect_order(from_memory, keys, source::Duplicates::first);
    EXPECT_GT(from_file.file_bytes, keys.size() * kDim * sizeof(float));
    EXPECT_EQ(from_memory.file_bytes, 0U);
}

TEST(RowBuckets, AscendingKeysAreDividedAgain) {
    std::vector<std::string> keys;
    for (int i = 0; i < 20000; ++i) keys.push_back("w" + std::to_string(100000 + i));
    const Outcome outcome = put_in_order(keys, {});
    expect_order(outcome, keys, source::Duplicates::first);
    // 65,536 bytes at 3 numbers, 56 bytes and a key of 7 a row: 873 rows, or what one batch brings.
    EXPECT_LE(outcome.largest_bucket, 874U);
    EXPECT_GT(outcome.buckets, 20U);
    // Keys that come once need no bucket of their own.
    EXPECT_EQ(outcome.buckets_of_one, 0U);
}

TEST(RowBuckets, OneKeyOverAndOverEnds) {
    std::vector<std::string> keys(20000, "same");
    keys[7] = "before";
    keys[19999] = "zzz";
    for (const source::Duplicates rule : {source::Duplicates::first, source::Duplicates::last}) {
        const Outcome outcome = put_in_order(keys, {.rule = rule});
        expect_order(outcome, keys, rule);
        EXPECT_EQ(outcome.dropped_count, 19997U);
        EXPECT_EQ(outcome.dropped.size(), source::kListedDuplicates);
        // Its rows are not held: what is loaded does not grow with their number.
        EXPECT_LE(outcome.largest_bucket, 874U);
    }
}

TEST(RowBuckets, LongKeysAreDividedAgain) {
    std::vector<std::string> keys;
    for (int i = 0; i < 2000; ++i)
        keys.push_back(std::to_string(100000 + i) + std::string(3000, 'x'));
    const Outcome outcome = put_in_order(keys, {.resident_bytes = 64 << 20});
    expect_order(outcome, keys, source::Duplicates::first);
    EXPECT_LE(outcome.largest_bucket, 500U);  // what one batch brings
}

TEST(RowBuckets, WhatIsTooLargeForTheIndexIsRefused) {
    const tests::TempDir directory;
    auto fd = open_directory(directory.path());
    ASSERT_TRUE(fd);
    Spool spool(fd->get(), "spool", directory.path(), 1 << 20);
    ASSERT_TRUE(spool.open());
    const auto batches = batches_of(random_keys(20000, 15000));
    RowBuckets buckets(spool, 1 << 16, 1 << 20, std::uint64_t{40} * 20000, 2000);
    buckets.set_dim(kDim);
    Status committed;
    for (std::size_t i = 0; i < batches.size() && committed; ++i) {
        buckets.add(batches[i]);
        committed = buckets.commit(batches[i]);
    }
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().code, ErrorCode::bad_source);
    EXPECT_NE(committed.error().message.find("give a larger --memory"), std::string::npos)
        << committed.error().message;
}

// One key that fills a bucket and a half: borders in front of it alone divided nothing, for ever.
TEST(RowBuckets, OneKeyThatFillsLittleMoreThanABucketEnds) {
    for (std::size_t rows = 600; rows <= 3000; rows += 200) {
        const std::vector<std::string> keys(rows, "same");
        const Outcome outcome = put_in_order(keys, {});
        expect_order(outcome, keys, source::Duplicates::first);
    }
}

TEST(RowBuckets, FewBucketsAtFirstWhereTheIndexIsSmall) {
    const auto keys = random_keys(20000, 15000);
    const Outcome outcome = put_in_order(keys, {.index_bytes = 2000});
    expect_order(outcome, keys, source::Duplicates::first);
    EXPECT_LE(outcome.largest_bucket, 900U);
}

TEST(RowBuckets, OneRow) {
    expect_order(put_in_order({"only"}, {}), {"only"}, source::Duplicates::first);
}

}  // namespace
}  // namespace gloved::convert
