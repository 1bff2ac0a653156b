// Any bytes as word2vec's binary format. Rows come out bit for bit as they stand there.
//
//     byte 0    1: --on-error skip, 2: --limit 2, 4: the format is left to be found
//     byte 1    in which pieces it is read
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/check.hpp"
#include "tests/fuzz/source_input.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/source.hpp"

using namespace gloved;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto option = [&](std::size_t i) {
        return static_cast<unsigned>(static_cast<std::uint8_t>(data[i] - '0'));
    };
    const std::string_view content(reinterpret_cast<const char*>(data) + 2, size - 2);
    source::SourceOptions options;
    if ((option(0) & 1) != 0) options.on_error = source::OnError::skip;
    if ((option(0) & 2) != 0) options.limit = 2;
    if ((option(0) & 4) == 0) options.format = source::SourceFormat::word2vec_bin;

    static fuzz::MemoryFile file;
    file.write(content);
    const fuzz::Reading reading = fuzz::read_in_several_ways(file.path(), options, option(1));
    if (!reading.error.empty() || reading.broken_off || reading.packed) return 0;
    if (reading.summary.format != source::SourceFormat::word2vec_bin) return 0;
    std::size_t at = 0;
    for (std::size_t row = 0; row < reading.keys.size(); ++row) {
        std::string record = reading.keys[row] + " ";
        record.append(
            reinterpret_cast<const char*>(reading.values.data() + row * reading.summary.dim),
            reading.summary.dim * sizeof(float));
        at = content.find(record, at);
        GLOVED_CHECK(at != std::string_view::npos);
        at += record.size();
    }
    return 0;
}
