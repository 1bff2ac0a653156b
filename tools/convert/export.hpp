// Exports a model to a file that other programs read.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "common/result.hpp"

namespace gloved::convert {

/// Every format has the rows in the order of their ranks: the source's order, most frequent first.
enum class ExportFormat {
    glove,         ///< lines of key and decimals, separated by one 0x20, ended by LF
    word2vec,      ///< a line «rows dim», then lines as in glove
    word2vec_bin,  ///< a line «rows dim», then for each row its key, 0x20, the float32
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
/// Before it writes, it calls `say` with the keys that some readers cannot load: counts and the
/// first few. At the end it calls `say` with what was written. These are lines for people.
///
/// The file is written beside its place as .NAME.gloved-PID-N, made durable and renamed, so that a
/// file of that name is replaced whole or not at all; of npy's two files the words come first.
/// Errors: those of Model::open; conflict, when the output exists and is not a regular file, or
/// lies in a model's directory; damaged, when the ranks are not a permutation or a number is not
/// finite; io; interrupted, once `stop` is set. After an error no file is new or changed. The model
/// is mapped; beside it, memory takes 4 bytes a row and some 10 MB a thread.
Status export_model(const ExportOptions& options, const std::atomic<bool>& stop,
                    const std::function<void(const std::string&)>& say);

}  // namespace gloved::convert
