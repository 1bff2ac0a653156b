// Any bytes as a text to convert, plain or packed by gzip. What is accepted reads back from what an
// export would write.
//
// The first bytes of an input choose how it is read, so that the seeds are readable: «0000» leaves
// all to gloved-convert.
//
//     byte 0    the format: 0 auto, 1 glove, 2 norms, 3 word2vec, 4 word2vec-bin, 5 fasttext
//     byte 1    --dim, 0 to 7; 0: to be found
//     byte 2    1: --on-error skip, 2: --limit 3, 4: gzip, 8: gzip of two members,
//               16: the last byte is missing
//     byte 3    in which pieces it is read

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/check.hpp"
#include "tests/fuzz/source_input.hpp"
#include "tests/support/gzip.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/line.hpp"
#include "tools/source/source.hpp"

using namespace gloved;

namespace {

constexpr std::size_t kOptionBytes = 4;

std::string packed(std::string_view text, unsigned flags) {
    std::string file;
    if ((flags & 8) != 0) {
        file = tests::gzip(std::string(text.substr(0, text.size() / 2)));
        text.remove_prefix(text.size() / 2);
    }
    file += (flags & (4 | 8)) != 0 ? tests::gzip(std::string(text)) : std::string(text);
    if ((flags & 16) != 0 && !file.empty()) file.pop_back();
    return file;
}

/// Each row as a line of shortest decimals is that row again.
void check_written_back(const fuzz::Reading& reading) {
    const std::size_t dim = reading.summary.dim;
    std::vector<float> again(dim);
    std::string line;
    for (std::size_t row = 0; row < reading.keys.size(); ++row) {
        const float* const values = reading.values.data() + row * dim;
        line = reading.keys[row];
        for (std::size_t i = 0; i < dim; ++i) {
            char number[16];
            line += ' ';
            line.append(number, std::to_chars(number, number + sizeof number, values[i]).ptr);
        }
        GLOVED_CHECK(source::trim_line_end(line) == line);
        std::string_view key;
        GLOVED_CHECK(!source::parse_line(line, dim, key, again.data(), true));
        GLOVED_CHECK(key == reading.keys[row]);
        const auto same = [](float a, float b) {
            return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
        };
        GLOVED_CHECK(std::equal(values, values + dim, again.data(), same));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < kOptionBytes) return 0;
    const auto option = [&](std::size_t i) {
        return static_cast<unsigned>(static_cast<std::uint8_t>(data[i] - '0'));
    };
    const std::string_view text(reinterpret_cast<const char*>(data) + kOptionBytes,
                                size - kOptionBytes);
    const unsigned flags = option(2);
    source::SourceOptions options;
    options.format = static_cast<source::SourceFormat>(option(0) % 6);
    options.dim = option(1) % 8;
    if ((flags & 1) != 0) options.on_error = source::OnError::skip;
    if ((flags & 2) != 0) options.limit = 3;

    static fuzz::MemoryFile file;
    file.write(packed(text, flags));
    const fuzz::Reading reading = fuzz::read_in_several_ways(file.path(), options, option(3));
    if (reading.error.empty() && !reading.broken_off) check_written_back(reading);
    return 0;
}
