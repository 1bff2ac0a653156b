// WordIndex: a hash table from the words of a model to their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/format/layout.hpp"

namespace gloved::format {

/// The words of a keys file. Views: whoever owns the file and the offsets keeps them.
struct WordList {
    std::string_view text;                  ///< the words, each with its LF
    std::span<const std::uint64_t> starts;  ///< rows + 1 offsets into `text`, ascending

    std::size_t rows() const { return starts.size() - 1; }
    /// The word of `row`, without its LF.
    std::string_view word(std::size_t row) const {
        return text.substr(starts[row], starts[row + 1] - starts[row] - 1);
    }
};

/// XXH3 of a word.
std::uint64_t hash_word(std::string_view word);

/// Open addressing with linear probing. A slot has a row and 32 bits of its word's hash, so that
/// hardly any other word is read than the one that is looked for. Three slots of 8 bytes for two
/// words: a word takes two probes on average, mostly in one cache line.
///
/// The table holds no offsets into the words. So it stays inside them even if their file is
/// changed after it was checked. Immutable: any number of threads may call find.
class WordIndex {
  public:
    using Hash = std::uint64_t (*)(std::string_view word);

    /// Indexes 1 to kMaxRows words in O(rows). nullopt if a word is kMaxProbes slots or more from
    /// where its hash belongs. That does not happen by chance: a hash without malice needs about
    /// 300 probes for kMaxRows words.
    static std::optional<WordIndex> build(const WordList& words, Hash hash = hash_word);

    /// The row of `word` among `words`, the list that the index was built for.
    std::optional<Row> find(std::string_view word, const WordList& words) const;

    /// Memory of the table.
    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

    static constexpr std::size_t kMaxProbes = 1024;

  private:
    struct Slot {
        std::uint32_t tag;
        Row row;
    };

    WordIndex(std::size_t homes, Hash hash);
    std::size_t home_of(std::uint64_t hash) const;
    bool insert(std::uint64_t hash, Row row);

    std::size_t homes_;        // slots that a hash can select
    std::vector<Slot> slots_;  // kMaxProbes more, so that no probe wraps around
    Hash hash_;
};

}  // namespace gloved::format
