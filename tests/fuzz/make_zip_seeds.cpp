// Writes fuzz_zip's seeds into a directory. They are made, not kept: archives are nothing that
// people can read.
#include <zip.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/gzip.hpp"
#include "tests/support/zip.hpp"

using namespace gloved::tests;

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("Usage: make_zip_seeds DIRECTORY\n", stderr);
        return 2;
    }
    const std::string text = "the 0.25 -0.5\nof 1e-3 2\n";
    const std::string archives[] = {
        zip_archive({{"a.txt", text, ZIP_CM_STORE}}),
        zip_archive({{"a.txt", text + text + text}}),
        zip_archive({{"d/", ""}, {"d/a.txt", text}, {"__MACOSX/d/._a.txt", "x"}}),
        zip_archive({{"a.txt", text}, {"b.txt", "b 1 2 3\n"}}),
        zip_archive({{"a.txt", text, ZIP_CM_DEFLATE, "secret"}}),
        zip_archive({{"a.txt.gz", gzip(text)}}),
        zip_archive({{"a.bin", "1 1\na \x01\x02\x03\x04"}}),
        zip64_archive("a.txt", text),
    };
    int made = 0;
    for (const std::string& archive : archives) {
        for (const std::string options : {"0A", "3D"}) {
            std::ofstream(std::string(argv[1]) + "/seed" + std::to_string(made++), std::ios::binary)
                << options << archive;
        }
    }
    return 0;
}
