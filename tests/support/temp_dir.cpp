#include "tests/support/temp_dir.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace gloved::tests {

TempDir::TempDir() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/gloved-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
        throw std::runtime_error("cannot make a temporary directory: " + path_);
}

TempDir::~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    EXPECT_TRUE(file.good()) << "cannot read " << path;
    return content.str();
}

void write_file(const std::string& path, const std::string& content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    EXPECT_TRUE(file.good()) << "cannot write " << path;
}

std::string source_path(const std::string& relative) { return GLOVED_SOURCE_DIR "/" + relative; }

}  // namespace gloved::tests
