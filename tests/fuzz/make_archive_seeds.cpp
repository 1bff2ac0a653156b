// Writes fuzz_archive's seeds into a directory. They are made, not kept: archives are nothing that
// people can read.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/gzip.hpp"
#include "tests/support/tar.hpp"
#include "tests/support/zip.hpp"

using namespace gloved::tests;

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("Usage: make_archive_seeds DIRECTORY\n", stderr);
        return 2;
    }
    const std::string text = "the 0.25 -0.5\nof 1e-3 2\n";
    const std::string tar = tar_archive({{"d/", "", AE_IFDIR}, {"a.txt", text}});
    const std::string archives[] = {
        zip_archive({{"a.txt", text, kZipStored}}),
        zip_archive({{"a.txt", text + text + text}}),
        zip_archive({{"d/", ""}, {"d/a.txt", text}, {"__MACOSX/d/._a.txt", "x"}}),
        zip_archive({{"a.txt", text}, {"b.txt", "b 1 2 3\n"}}),
        zip_archive({{"a.txt", text, kZipDeflated, kZipEncrypted}}),
        zip_archive({{"a.txt", text, kZipDeflated, kZipSizesBehindData}}),
        zip_archive({{"a.txt.gz", gzip(text)}}),
        zip_archive({{"a.bin", "1 1\na \x01\x02\x03\x04"}}),
        zip64_archive("a.txt", text),
        bzip2(text),
        xz(text),
        zstd(text),
        tar,
        tar_archive({{"a.txt", text}, {std::string(200, 'b'), "b 1 2 3\n"}}),
        gzip(tar),
        bzip2(tar),
        xz(tar),
        zstd(tar),
    };
    int made = 0;
    for (const std::string& archive : archives) {
        for (const std::string options : {"0A", "4A", "3D"}) {
            std::ofstream(std::string(argv[1]) + "/seed" + std::to_string(made++), std::ios::binary)
                << options << archive;
        }
    }
    return 0;
}
