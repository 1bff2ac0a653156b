// museum.hpp for a build without CUDA.
#include "tools/bench/museum.hpp"

namespace gloved::bench {

Status print_museum(const MuseumSettings&) {
    return Error{ErrorCode::unavailable, "this build has no CUDA, which the museum's kernels need"};
}

}  // namespace gloved::bench
