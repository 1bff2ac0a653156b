#include "tools/bench/scratch.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/files.hpp"

namespace gloved::bench {

Result<ScratchDirectory> ScratchDirectory::create() {
    const char* base = std::getenv("TMPDIR");
    ScratchDirectory scratch;
    std::string path =
        std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/gloved-bench-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return system_error(path, "cannot create", errno);
    scratch.path_ = std::move(path);
    return scratch;
}

ScratchDirectory::~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace gloved::bench
