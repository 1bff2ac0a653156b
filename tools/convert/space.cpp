#include "tools/convert/space.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>

#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/planes.hpp"

namespace gloved::convert {

double model_bytes(const ModelSize& size) {
    const double row_bytes =
        static_cast<double>(size.dim) * sizeof(float) + sizeof(double) + sizeof(std::uint32_t) + 1;
    return size.rows * row_bytes + size.key_bytes +
           static_cast<double>(format::kHeaderBytes + 3 * format::kSectionAlignment);
}

Status check_space(const ConvertOptions& options, const format::Staging& staging,
                   const ModelSize& model, double spool_bytes, double spool_more, double sure) {
    struct statvfs filesystem {};
    // Unknown: a write fails if there is no room.
    if (::fstatvfs(staging.directory_fd(), &filesystem) != 0 || filesystem.f_blocks == 0) return {};
    const double free =
        static_cast<double>(filesystem.f_bavail) * static_cast<double>(filesystem.f_frsize);
    const format::PlanesHeader planes{static_cast<std::uint64_t>(model.rows),
                                      static_cast<std::uint32_t>(model.dim), 0, 0};
    const double planes_bytes = options.planes ? static_cast<double>(planes.file_bytes()) : 0;
    const double beside_spool =
        std::max(model_bytes(model), model_bytes(model) + planes_bytes - spool_bytes);
    const double bytes = spool_more + beside_spool;
    if (sure * bytes <= free) return {};
    return error_with(ErrorCode::io,
                      "{}: the conversion needs {}{:.3f} GB, with what it lays aside meanwhile, "
                      "and the filesystem has {:.3f} GB free; make room, choose another place or "
                      "keep fewer words (--limit)",
                      options.model_dir, sure < 1 ? "about " : "", bytes / 1e9, free / 1e9);
}

}  // namespace gloved::convert
