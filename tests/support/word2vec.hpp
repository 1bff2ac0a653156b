// word2vec's binary format, made for tests.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gloved::tests {

/// One record: the word, a blank, the numbers.
inline std::string record(const std::string& word, const std::vector<float>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return word + " " + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace gloved::tests
