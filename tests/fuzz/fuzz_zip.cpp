// Any bytes as a zip archive to convert: the directory, the member that is chosen, and its text.
//
//     byte 0    1: --on-error skip, 2: --member a.txt
//     byte 1    in which pieces it is read
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/source_input.hpp"
#include "tools/source/source.hpp"

using namespace gloved;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto option = [&](std::size_t i) {
        return static_cast<unsigned>(static_cast<std::uint8_t>(data[i] - '0'));
    };
    source::SourceOptions options;
    if ((option(0) & 1) != 0) options.on_error = source::OnError::skip;
    static fuzz::MemoryFile file;
    file.write({reinterpret_cast<const char*>(data) + 2, size - 2});
    (void)fuzz::read_in_several_ways(file.path(), options, option(1),
                                     (option(0) & 2) != 0 ? "a.txt" : "");
    return 0;
}
