// Models for benchmarks and tests: makes random ones of any size that resemble GloVe's, keeps them
// in a temporary directory, and picks random words of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"

namespace gloved::bench {

/// Size and seed of the model.
struct GenerateOptions {
    std::uint64_t rows = 0;  ///< in [1, format::kMaxRows]
    std::uint32_t dim = 0;   ///< in [1, format::kMaxDim]
    std::uint64_t seed = 1;
    unsigned threads = 0;  ///< 0: one per usable processor
};

/// Writes a model to `directory`, and replaces an old one there. Its content depends only on rows,
/// dim and seed. Memory use does not grow with the rows. Returns the header of its values file.
///
/// Keys: distinct, mostly of 4 to 12 bytes, some beyond ASCII. Ranks: a pseudo-random permutation.
/// Vectors: the sum of a direction of all words (more for frequent ones), a direction of the word's
/// topic, and near-normal components of its own, so that cosines spread as in GloVe: around 0.1 to
/// 0.3 for any two words, 0.5 to 0.9 for the nearest. Norms are around 3 to 10, smallest for rare
/// words.
///
/// Errors: interrupted, once `interrupted`, which is called now and then, returns true; io;
/// conflict. After an error `directory` is unchanged.
Result<format::Header> generate_model(const std::string& directory, const GenerateOptions& options,
                                      const std::function<bool()>& interrupted = {});

/// Owns a temporary directory; the destructor removes it with its content.
class ScratchDirectory {
  public:
    /// Creates an empty directory. Error: io.
    static Result<ScratchDirectory> create();
    ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchDirectory& operator=(ScratchDirectory&&) = delete;
    ~ScratchDirectory();
    const std::string& path() const { return path_; }

  private:
    ScratchDirectory() = default;
    std::string path_;
};

/// Picks random rows whose vectors are not zero. The same model and seed give the same rows. The
/// model must outlive it and have at least one such row.
class RandomWords {
  public:
    RandomWords(const format::Model& model, std::uint64_t seed) : model_(model), random_(seed) {}

    /// The next random row.
    format::Row next() {
        auto row = static_cast<std::size_t>(random_() % model_.rows());
        while (!(model_.norms()[row] > 0)) row = (row + 1) % model_.rows();
        return static_cast<format::Row>(row);
    }

  private:
    const format::Model& model_;
    std::mt19937_64 random_;
};

}  // namespace gloved::bench
