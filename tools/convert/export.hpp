// Exports a model to a file that other programs read, such as gensim: gloved-convert --export.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "common/result.hpp"

namespace gloved::convert {

/// Formats of exports. All have the rows in the order of their ranks, which is the order of the
/// download: most frequent first.
enum class ExportFormat {
    glove,         ///< lines of key and decimals, separated by one 0x20, ended by LF
    word2vec,      ///< a line «rows dim», then lines as in glove
    word2vec_bin,  ///< a line «rows dim», then for each row its key, 0x20, the float32
                   ///< little-endian, LF
    npy,  ///< a NumPy array, version 1.0, «<f4» in C order, shape (rows, dim); OUTPUT.words: the
          ///< keys, one a line
    safetensors,  ///< one tensor, «embeddings», F32, shape (rows, dim); OUTPUT.words as of npy
};

/// What to export and where.
struct ExportOptions {
    ExportFormat format = ExportFormat::glove;
    std::string model_dir;
    std::string output;  ///< a file; «-» for stdout (not of an array, which makes two files)
};

/// Writes the model `options.model_dir` to `options.output`. Decimals are the shortest that read
/// back as the same float32, bit for bit, −0 and denormals included. So a glove or word2vec export
/// can be converted to the same keys and values again, except for keys that it warns about.
///
/// Calls `say` with lines for people: before it writes, warnings about keys that some readers
/// cannot load, with their number and the first few; at the end, what was written.
///
/// The file is written as .NAME.gloved-PID-N beside its place, made durable and renamed, so that an
/// older file is replaced completely or not at all (OutputFile). Of an array's two files the words
/// are renamed first. Errors: those of Model::open; conflict, if the output exists and is not a
/// regular file, or is in a model's directory; damaged, if the ranks are not a permutation or a
/// number is not finite; io; interrupted, once `stop` is true. After an error OUTPUT is as it was,
/// unless the last sync failed; the words of an array may be new, and stdout may have a part. The
/// model is mapped; besides that, it needs 4 bytes of memory per row and some 10 MB per thread.
Status export_model(const ExportOptions& options, const std::atomic<bool>& stop,
                    const std::function<void(const std::string&)>& say);

}  // namespace gloved::convert
