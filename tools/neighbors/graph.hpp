// What a model's lists of neighbours say together: hubs, mutual neighbours, and how two models
// differ.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/result.hpp"
#include "tools/neighbors/lists.hpp"

namespace gloved::neighbors {

/// For each row, in how many of the lists, cut to `k`, it is: its k-occurrence. Rows that the model
/// does not have are skipped; Neighbors::verify finds them.
std::vector<std::uint32_t> count_occurrences(const format::Neighbors& neighbors, std::size_t k);

/// The distribution of k-occurrences. (Radovanović, Nanopoulos and Ivanović 2010, «Hubs in space:
/// popular nearest neighbors in high-dimensional data».)
struct Hubness {
    double mean = 0;
    double deviation = 0;      ///< standard deviation, over all words
    double skewness = 0;       ///< E[(N − mean)³] / deviation³; 0 if all are equal
    std::size_t orphans = 0;   ///< words that are nobody's neighbour
    double share_of_hubs = 0;  ///< of all places in lists, those of the 1 % with the most
};
Hubness describe_occurrences(std::span<const std::uint32_t> occurrences);

/// The pairs of rows, smaller one first and in ascending order, of which each is in the other's
/// list, cut to `k`.
std::vector<std::pair<format::Row, format::Row>> find_mutual(const format::Neighbors& neighbors,
                                                             std::size_t k);

/// How a word's neighbours in two models agree.
struct Agreement {
    format::Row row = 0;       ///< of the word in the first model
    std::uint32_t shared = 0;  ///< words that are in both lists
    std::uint32_t length = 0;  ///< of the longer list
};

/// The agreement of each word that both models have and that has neighbours in one of them, in the
/// order of the first model's rows. Lists are cut to `k`. A neighbour that the other model lacks is
/// not shared.
std::vector<Agreement> compare_lists(const format::Model& model, const format::Neighbors& neighbors,
                                     const format::Model& other,
                                     const format::Neighbors& other_neighbors, std::size_t k);

/// Writes the hubs: with a path of «-», the figures of Hubness and then the `shown` words with the
/// most occurrences; otherwise a line of occurrences and word for every word, most first, as a
/// table if the path ends with «.csv». Words of equal numbers stand in the order of their frequency
/// ranks. Errors: io, conflict, interrupted.
Status write_hubs(const format::Model& model, const format::Neighbors& neighbors, std::size_t k,
                  std::size_t shown, const std::string& path, const std::atomic<bool>& stop);

/// Writes the mutual neighbours: csv, tsv and edges with scores, npy of shape (pairs, 2), int32;
/// not ivecs. Errors: io, conflict, interrupted.
Status write_mutual(const format::Model& model, const format::Neighbors& neighbors, std::size_t k,
                    const ListOutput& output, const std::atomic<bool>& stop);

/// Writes how two models' lists agree: with a path of «-», figures and then the `shown` words that
/// share the fewest; otherwise a line of shared neighbours and word for every word in both, as a
/// table if the path ends with «.csv». Errors:
/// io, conflict, interrupted; mismatch, if the models have no words in common.
Status write_comparison(const format::Model& model, const format::Neighbors& neighbors,
                        const format::Model& other, const format::Neighbors& other_neighbors,
                        std::size_t k, std::size_t shown, const std::string& path,
                        const std::atomic<bool>& stop);

}  // namespace gloved::neighbors
