#include "tools/convert/space.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>

#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/planes.hpp"

namespace gloved::convert {

double model_bytes(double rows, double key_bytes, std::size_t dim) {
    const double row_bytes =
        static_cast<double>(dim) * sizeof(float) + sizeof(double) + sizeof(std::uint32_t) + 1;
    return rows * row_bytes + key_bytes +
           static_cast<double>(format::kHeaderBytes + 3 * format::kSectionAlignment);
}

double planes_bytes(double rows, std::size_t dim) {
    return static_cast<double>(format::PlanesHeader{static_cast<std::uint64_t>(rows),
                                                    static_cast<std::uint32_t>(dim), 0, 0}
                                   .file_bytes());
}

double bytes_beyond_spool(double model, double planes, double spool) {
    return std::max(model, model + planes - spool);
}

Status check_space(const std::string& model_dir, const format::Staging& staging, double bytes,
                   double sure) {
    struct statvfs filesystem {};
    // Unknown: a write fails if there is no room.
    if (::fstatvfs(staging.directory_fd(), &filesystem) != 0 || filesystem.f_blocks == 0) return {};
    const double free =
        static_cast<double>(filesystem.f_bavail) * static_cast<double>(filesystem.f_frsize);
    if (sure * bytes <= free) return {};
    return error_with(ErrorCode::io,
                      "{}: the conversion needs {}{:.3f} GB, with what it lays aside meanwhile, "
                      "and the filesystem has {:.3f} GB free; make room, choose another place or "
                      "keep fewer words (--limit)",
                      model_dir, sure < 1 ? "about " : "", bytes / 1e9, free / 1e9);
}

}  // namespace gloved::convert
