// Any bytes as an array with its words, and as a file of words. Rows come out in order, with words
// as they stand in the list, in any pieces and by any number of threads.
//
//     byte 0        1: --on-error skip, 2: --limit 2, 4: --tensor e
//     byte 1        in which pieces it is read
//     bytes 2, 3    the size of the words, in two digits of 64 from «0» on
//     then          the words, and the array
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/check.hpp"
#include "tests/fuzz/source_input.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/source.hpp"

using namespace gloved;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kOptions = 4;
    if (size < kOptions) return 0;
    const auto option = [&](std::size_t i) {
        return static_cast<unsigned>(static_cast<std::uint8_t>(data[i] - '0'));
    };
    std::string_view content(reinterpret_cast<const char*>(data), size);
    content.remove_prefix(kOptions);
    const std::size_t words_bytes =
        std::min<std::size_t>(64 * (option(2) % 64) + option(3) % 64, content.size());
    static fuzz::MemoryFile words;
    static fuzz::MemoryFile file;
    words.write(content.substr(0, words_bytes));
    file.write(content.substr(words_bytes));

    source::SourceOptions options;
    options.words = words.path();
    if ((option(0) & 1) != 0) options.on_error = source::OnError::skip;
    if ((option(0) & 2) != 0) options.limit = 2;
    if ((option(0) & 4) != 0) options.tensor = "e";
    // A header is read at once, whatever the pieces.
    constexpr std::size_t kMuch = 1 << 14;
    constexpr std::size_t kPieces[] = {4, 7, 64, 1000};
    options.head_bytes = kMuch;
    options.chunk_bytes = kMuch;
    options.threads = 0;
    const fuzz::Reading reading = fuzz::read_download(file.path(), options, {}, kMuch);
    if (option(1) / 16 % 16 == 1) {
        options.threads = 2;
        fuzz::check_same(reading, fuzz::read_download(file.path(), options, {}, kMuch), false,
                         false);
    }
    options.threads = 0;
    options.chunk_bytes = kPieces[option(1) % 4];
    fuzz::check_same(reading, fuzz::read_download(file.path(), options, {}, kMuch), false, true);
    if (reading.error.empty() && !reading.broken_off && !reading.packed)
        GLOVED_CHECK(source::is_array(reading.summary.format));
    return 0;
}
