// Any bytes as an archive or compressed data to convert: the headers, the member that is chosen,
// and its text.
//
//     byte 0    1: --on-error skip, 2: --member a.txt, 4: from a pipe too
//     byte 1    in which pieces it is read
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/check.hpp"
#include "tests/fuzz/source_input.hpp"
#include "tools/source/source.hpp"

using namespace gloved;

namespace {

constexpr std::size_t kPipeBytes = 1 << 16;  // what a pipe holds

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto option = [&](std::size_t i) {
        return static_cast<unsigned>(static_cast<std::uint8_t>(data[i] - '0'));
    };
    source::SourceOptions options;
    if ((option(0) & 1) != 0) options.on_error = source::OnError::skip;
    static fuzz::MemoryFile file;
    file.write({reinterpret_cast<const char*>(data) + 2, size - 2});
    const std::string member = (option(0) & 2) != 0 ? "a.txt" : "";
    (void)fuzz::read_in_several_ways(file.path(), options, option(1), member);
    if ((option(0) & 4) == 0 || size > kPipeBytes) return 0;
    int ends[2];
    GLOVED_CHECK(::pipe(ends) == 0);
    GLOVED_CHECK(::write(ends[1], data + 2, size - 2) == static_cast<ssize_t>(size - 2));
    ::close(ends[1]);
    options.threads = 0;
    (void)fuzz::read_download("/proc/self/fd/" + std::to_string(ends[0]), options, member, 1 << 12);
    ::close(ends[0]);
    return 0;
}
