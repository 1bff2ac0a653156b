// A model as a file that other programs read.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "common/result.hpp"

namespace gloved::convert {

/// Rows stand in the order of their ranks in every format: the source's order, most frequent words
/// first.
enum class ExportFormat {
    glove,         ///< lines of key and decimals, separated by one 0x20, ended by LF
    word2vec,      ///< the same behind a line of rows and dim
    word2vec_bin,  ///< a line of rows and dim, then for each row its key, 0x20, the float32
                   ///< little-endian, LF
    npy,  ///< a NumPy array, version 1.0, «<f4» in C order, shape (rows, dim); OUTPUT.words: the
          ///< keys, one a line
};

struct ExportOptions {
    ExportFormat format = ExportFormat::glove;
    std::string model_dir;
    std::string output;  ///< a file; «-» for stdout (not npy, which makes two files)
};

/// Writes the model `options.model_dir` to `options.output`. Decimals are the shortest that read
/// back as the same float32, bit for bit, −0 and denormals included: the glove and the word2vec
/// export convert again to the same keys and values, where the messages below name no exception.
///
/// `say` is told, before anything is written, which keys some readers cannot load: counts and the
/// first few; and in the end what was written. What it is told are lines for people.
///
/// The file is written beside its place as .NAME.gloved-PID-N, made durable and renamed, so that a
/// file of that name is replaced whole or not at all; of npy's two files the words come first.
/// Errors: those of Model::open; conflict, when the output exists and is no regular file, or lies
/// in a model's directory; damaged, when the ranks are no permutation or a number is not finite;
/// io; interrupted, once `stop` is set. No file is left then, and none changed. The model is
/// mapped; beside it, memory takes 4 bytes a row and some 10 MB a thread.
Status export_model(const ExportOptions& options, const std::atomic<bool>& stop,
                    const std::function<void(const std::string&)>& say);

}  // namespace gloved::convert
