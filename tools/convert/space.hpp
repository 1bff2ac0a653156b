// How much disk space a conversion needs, and whether there is as much.
#pragma once

#include <cstddef>
#include <string>

#include "common/format/publish.hpp"
#include "common/result.hpp"

namespace gloved::convert {

/// The part of an estimate that is surely needed: duplicates may make the model smaller.
inline constexpr double kCertainShare = 0.8;

/// Bytes of keys and values. In the spool they take no more: a row has 12 bytes beside key and
/// numbers there, 13 here.
double model_bytes(double rows, double key_bytes, std::size_t dim);

/// Bytes of the planes file.
double planes_bytes(double rows, std::size_t dim);

/// Bytes that the model needs beside the spool's file of `spool` bytes, which is freed before
/// planes are written.
double bytes_beyond_spool(double model, double planes, double spool);

/// Checks that the staging directory's filesystem has room for the share `sure` of `bytes`. Error:
/// io, which names `model_dir`.
Status check_space(const std::string& model_dir, const format::Staging& staging, double bytes,
                   double sure);

}  // namespace gloved::convert
