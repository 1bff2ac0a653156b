// Writes fuzz_model's seeds into a directory. They are made, not kept, so that they follow the
// format.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "common/format/layout.hpp"
#include "common/format/planes.hpp"
#include "tests/fuzz/model_input.hpp"

using namespace gloved;

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("Usage: make_model_seeds DIRECTORY\n", stderr);
        return 2;
    }
    const std::string keys[] = {"a\n", "a\nab\nb\n\xC3\xA9\n", "a\na\n", "b\na\n", "\n", "a\nb"};
    int made = 0;
    for (const std::string& text : keys) {
        const auto rows = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
        const format::Header header = fuzz::seed_header(rows, 3);
        const auto bytes = format::encode_header(header);
        const std::size_t used = fuzz::kFixedBytes + header.sections.size() * fuzz::kEntryBytes;
        const auto planes = format::encode_planes_header({rows, header.dim, header.generation, 0});
        constexpr int kPlanes = fuzz::kRepairAll | fuzz::kWithPlanes | fuzz::kRepairPlanes;
        for (const int what : {+fuzz::kRepairAll, +fuzz::kRepairNothing, kPlanes,
                               kPlanes | fuzz::kPlanesOneByteLess}) {
            std::string input = {static_cast<char>(what),
                                 static_cast<char>(header.sections.size())};
            input.append(reinterpret_cast<const char*>(bytes.data()), used);
            if ((what & fuzz::kWithPlanes) != 0) {
                input.append(reinterpret_cast<const char*>(planes.data()), fuzz::kPlanesBytes);
            }
            input += text;
            std::ofstream(std::string(argv[1]) + "/seed" + std::to_string(made++), std::ios::binary)
                << input;
        }
    }
    return 0;
}
