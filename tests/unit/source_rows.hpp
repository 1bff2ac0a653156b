// What read_source makes of a file, for tests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/input.hpp"
#include "tools/source/source.hpp"

namespace gloved::source {

struct Rows {
    SourceSummary summary;
    std::vector<std::string> keys;
    std::vector<std::uint64_t> lines;     ///< of each row, from 1
    std::vector<std::uint64_t> sequence;  ///< of each batch
    std::vector<float> values;            ///< shape (rows, dim)
    std::string said;                     ///< messages, one a line
};

/// Reads the file `path` to its end or to a fault, which is the error.
inline Result<Rows> read_rows(const std::string& path, const SourceOptions& options) {
    static const std::atomic<bool> go_on{false};
    auto input = Input::open(path, go_on);
    if (!input) return input.error();
    Rows rows;
    SourceSink sink;
    sink.commit = [&](Batch& batch) -> Status {
        rows.sequence.push_back(batch.sequence);
        rows.values.insert(
            rows.values.end(), batch.values.begin(),
            batch.values.begin() + static_cast<std::ptrdiff_t>(batch.rows() * rows.summary.dim));
        for (std::size_t i = 0; i < batch.rows(); ++i) {
            rows.keys.emplace_back(batch.key(i));
            rows.lines.push_back(batch.first_line + batch.line_numbers[i] + 1);
        }
        return {};
    };
    sink.say = [&](const std::string& message) { rows.said += message + "\n"; };
    sink.begin = [&](const SourceSummary& found) -> Status {
        rows.summary = found;
        return {};
    };
    auto summary = read_source(*input, options, sink);
    if (!summary) return summary.error();
    rows.summary = *summary;
    return rows;
}

}  // namespace gloved::source
