#include "tools/convert/key_sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace gloved::convert {
namespace {

KeyList list_of(const std::vector<std::string>& words) {
    KeyList keys;
    for (const std::string& word : words) {
        keys.bytes += word;
        keys.ends.push_back(keys.bytes.size());
    }
    return keys;
}

/// By std::string's own comparison, which is that of unsigned bytes.
std::vector<std::uint32_t> expected(const std::vector<std::string>& words) {
    std::vector<std::uint32_t> order(words.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return std::tie(words[a], a) < std::tie(words[b], b); });
    return order;
}

TEST(KeySort, OrdersByUnsignedBytesAndEqualKeysByPosition) {
    const std::vector<std::string> words = {"b",         "a", "\xFF",    "a\x01",    "\x80",
                                            "z",         "a", "aaaa",    "aaaaaaaa", "aaa",
                                            "aaaaaaaaa", "b", "aaaaaaa", "\x01"};
    EXPECT_EQ(sort_keys(list_of(words)), expected(words));
}

TEST(KeySort, OrdersKeysThatShareLongPrefixes) {
    std::mt19937_64 random(7);
    std::vector<std::string> words;
    for (int i = 0; i < 20000; ++i) {
        std::string word(random() % 40, 'p');
        const std::size_t more = random() % 4;
        for (std::size_t j = 0; j < more; ++j) word += static_cast<char>(1 + random() % 255);
        words.push_back(word.empty() ? "x" : word);
    }
    EXPECT_EQ(sort_keys(list_of(words)), expected(words));
}

TEST(KeySort, TakesEqualKeysOfAMegabyte) {
    const std::vector<std::string> words = {
        std::string(1 << 20, 'a') + "b", std::string(1 << 20, 'a'), std::string(1 << 20, 'a') + "b",
        std::string(1 << 20, 'a') + "a"};
    EXPECT_EQ(sort_keys(list_of(words)), expected(words));
}

TEST(KeySort, OrdersNoKeysAndOne) {
    EXPECT_TRUE(sort_keys(KeyList()).empty());
    EXPECT_EQ(sort_keys(list_of({"one"})), std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace gloved::convert
