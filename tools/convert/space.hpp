// How much disk space a conversion needs, and whether there is as much.
#pragma once

#include <cstddef>

#include "common/format/publish.hpp"
#include "common/result.hpp"
#include "tools/convert/convert.hpp"

namespace gloved::convert {

/// The part of an estimate that is surely needed: duplicates may make the model smaller.
inline constexpr double kCertainShare = 0.8;

/// What determines a model's size.
struct ModelSize {
    double rows = 0;
    double key_bytes = 0;
    std::size_t dim = 0;
};

/// Bytes of keys and values. In the spool they take no more: a row has 12 bytes beside key and
/// numbers there, 13 here.
double model_bytes(const ModelSize& size);

/// Checks that the staging directory's filesystem has room for the share `sure` of what is still to
/// be written: `spool_more` bytes to the spool's file, which will have `spool_bytes`, and the
/// model. The file is freed before planes are written. Error: io, which names options.model_dir.
Status check_space(const ConvertOptions& options, const format::Staging& staging,
                   const ModelSize& model, double spool_bytes, double spool_more, double sure);

}  // namespace gloved::convert
