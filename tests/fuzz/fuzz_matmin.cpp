// Any bytes as matrices: text against a parser that is written for reading, and all of it in
// several pieces.
//
// The first two bytes of an input choose how it is read, so that the seeds are readable:
//
//     byte 0    the type: 0 float64, 1 float32, 2 int32
//     byte 1    in which pieces it is read
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/source_input.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/matmin/npy_reader.hpp"
#include "tools/matmin/text_reader.hpp"
#include "tools/source/input.hpp"

using namespace gloved;

namespace {

constexpr std::size_t kOptionBytes = 2;
constexpr std::size_t kInputBytes = 1 << 12;  // more than a fuzzer makes

/// What a source was read as.
template <class T>
struct Outcome {
    std::string error;  ///< empty: it was accepted
    std::uint64_t count = 0;
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<T> minimum;
    std::vector<T> maximum;
};

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
bool same(const Outcome<T>& a, const Outcome<T>& b) {
    return a.count == b.count && a.rows == b.rows && a.columns == b.columns &&
           same_bytes(a.minimum, b.minimum) && same_bytes(a.maximum, b.maximum);
}

template <class T>
Outcome<T> read(const std::string& path, std::size_t block_bytes, std::size_t threads) {
    static const std::atomic<bool> never_stop{false};
    Outcome<T> outcome;
    const auto refused = [&](const Error& error) {
        GLOVED_CHECK(error.code == ErrorCode::bad_source || error.code == ErrorCode::damaged ||
                     error.code == ErrorCode::unsupported);
        GLOVED_CHECK(error.message.starts_with(path + ": ") &&
                     error.message.find('\n') == std::string::npos);
        outcome.error = error.message;
        return outcome;
    };
    auto input = source::Input::open(path, never_stop, {}, kInputBytes);
    GLOVED_CHECK(input);
    matmin::ReadOptions options;
    options.block_bytes = block_bytes;
    options.threads = threads;
    const matmin::Begin<T> begin = [&](std::uint64_t count, matmin::Shape shape) {
        GLOVED_CHECK(count != 0 && shape.rows != 0 && shape.columns != 0);
        return Result<kernels::reduce::Reducer<T>*>(nullptr);
    };
    std::optional<Result<matmin::Reading<T>>> reading;
    const auto head = input->peek(npy::kMaxHeaderBytes);
    GLOVED_CHECK(head);
    if (npy::is_npy(*head)) {
        const auto header = npy::parse_header(*head, path);
        if (!header) return refused(header.error());
        if (Status plain = npy::check_plain(*header, path); !plain) return refused(plain.error());
        reading.emplace(matmin::read_npy<T>(*input, *header, options, begin));
    } else {
        reading.emplace(matmin::read_text<T>(*input, options, begin));
    }
    if (!*reading) return refused(reading->error());
    const matmin::Reading<T>& read = **reading;
    outcome.count = read.count;
    outcome.rows = read.shape.rows;
    outcome.columns = read.shape.columns;
    outcome.minimum.assign(read.range.minimum().begin(), read.range.minimum().end());
    outcome.maximum.assign(read.range.maximum().begin(), read.range.maximum().end());
    return outcome;
}

// ---- The same by the book: a line at a time, a word at a time, the C library's numbers.

std::size_t digits_at(const std::string& word, std::size_t at) {
    std::size_t count = 0;
    while (at + count < word.size() && word[at + count] >= '0' && word[at + count] <= '9') ++count;
    return count;
}

template <class T>
std::optional<T> plain_number(const std::string& word) {
    std::size_t at = word.starts_with('-') || word.starts_with('+') ? 1 : 0;
    std::size_t digits = digits_at(word, at);
    at += digits;
    if constexpr (std::is_integral_v<T>) {
        errno = 0;
        const long long value = std::strtoll(word.c_str(), nullptr, 10);
        if (digits == 0 || at != word.size() || errno == ERANGE) return std::nullopt;
        if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
            return std::nullopt;
        return static_cast<T>(value);
    } else {
        if (at < word.size() && word[at] == '.') {
            const std::size_t fraction = digits_at(word, at + 1);
            digits += fraction;
            at += 1 + fraction;
        }
        if (digits == 0) return std::nullopt;
        if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
            ++at;
            if (at < word.size() && (word[at] == '-' || word[at] == '+')) ++at;
            const std::size_t exponent = digits_at(word, at);
            if (exponent == 0) return std::nullopt;
            at += exponent;
        }
        if (at != word.size()) return std::nullopt;
        const T value = std::is_same_v<T, float>
                            ? static_cast<T>(std::strtof(word.c_str(), nullptr))
                            : static_cast<T>(std::strtod(word.c_str(), nullptr));
        if (std::isinf(value)) return std::nullopt;
        return value;
    }
}

std::vector<std::string> words_of(std::string line) {
    if (line.ends_with('\r')) line.pop_back();
    std::vector<std::string> words(1);
    for (const char c : line) {
        if (c == ' ' || c == '\t') {
            words.emplace_back();
        } else {
            words.back() += c;
        }
    }
    std::erase(words, "");
    return words;
}

template <class T>
bool before(T a, T b) {
    return a < b || (a == 0 && b == 0 && std::signbit(static_cast<double>(a)) &&
                     !std::signbit(static_cast<double>(b)));
}

/// nullopt: it is refused.
template <class T>
std::optional<Outcome<T>> plain_read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    std::vector<std::vector<std::string>> lines;
    while (!text.empty()) {
        const std::size_t newline = std::min(text.find('\n'), text.size());
        auto words = words_of(std::string(text.substr(0, newline)));
        if (!words.empty()) lines.push_back(std::move(words));
        text.remove_prefix(std::min(newline + 1, text.size()));
    }
    if (lines.empty() || lines[0].size() != 1) return std::nullopt;
    const std::string& count = lines[0][0];
    errno = 0;
    const unsigned long long announced = std::strtoull(count.c_str(), nullptr, 10);
    if (digits_at(count, 0) != count.size() || errno == ERANGE || announced == 0)
        return std::nullopt;

    const std::vector<std::string> separator = {"***"};
    std::vector<std::vector<T>> matrices;
    std::vector<T> matrix;
    std::size_t rows = 0;
    Outcome<T> outcome;
    const auto end_matrix = [&] {
        if (matrices.empty()) outcome.rows = rows;
        if (rows != outcome.rows) return false;
        matrices.push_back(std::exchange(matrix, {}));
        rows = 0;
        return true;
    };
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (lines[i] == separator) {
            if (rows == 0 && i != 1) return std::nullopt;
            if (rows != 0 && !end_matrix()) return std::nullopt;
            continue;
        }
        if (outcome.columns == 0) outcome.columns = lines[i].size();
        if (lines[i].size() != outcome.columns) return std::nullopt;
        for (const std::string& word : lines[i]) {
            const auto number = plain_number<T>(word);
            if (!number) return std::nullopt;
            matrix.push_back(*number);
        }
        ++rows;
    }
    if (rows != 0 && !end_matrix()) return std::nullopt;
    if (matrices.size() != announced) return std::nullopt;
    outcome.count = announced;
    outcome.minimum = outcome.maximum = matrices[0];
    for (const auto& other : matrices) {
        for (std::size_t i = 0; i < other.size(); ++i) {
            if (before(other[i], outcome.minimum[i])) outcome.minimum[i] = other[i];
            if (before(outcome.maximum[i], other[i])) outcome.maximum[i] = other[i];
        }
    }
    return outcome;
}

template <class T>
void check(std::string_view bytes, unsigned variation) {
    static fuzz::MemoryFile file;
    file.write(bytes);
    constexpr std::size_t kPieces[] = {1, 2, 3, 5, 8, 13, 64, 1000};
    const Outcome<T> whole = read<T>(file.path(), kInputBytes, 0);
    // Starting threads takes longer than all the rest, so that few inputs pay for it.
    const std::size_t threads = variation / 8 % 16 == 1 ? 2 : 0;
    const Outcome<T> pieces = read<T>(file.path(), kPieces[variation % 8], threads);
    if (whole.error != pieces.error)
        std::fprintf(stderr, "%s\n%s\n", whole.error.c_str(), pieces.error.c_str());
    GLOVED_CHECK(whole.error == pieces.error && same(whole, pieces));
    if (npy::is_npy(bytes)) return;
    const auto plain = plain_read<T>(bytes);
    if (!plain != !whole.error.empty()) std::fprintf(stderr, "%s\n", whole.error.c_str());
    GLOVED_CHECK(!plain == !whole.error.empty());
    if (plain) GLOVED_CHECK(same(whole, *plain));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < kOptionBytes) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + kOptionBytes,
                                 size - kOptionBytes);
    // What is packed, other targets look into.
    if (bytes.starts_with("\x1f\x8b") || bytes.starts_with("PK")) return 0;
    const auto variation = static_cast<unsigned>(static_cast<std::uint8_t>(data[1] - '0'));
    switch (static_cast<unsigned>(static_cast<std::uint8_t>(data[0] - '0')) % 3) {
        case 0:
            check<double>(bytes, variation);
            break;
        case 1:
            check<float>(bytes, variation);
            break;
        default:
            check<std::int32_t>(bytes, variation);
    }
    return 0;
}
