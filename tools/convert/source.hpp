// A whole download, read in pieces by several threads and handed out in its own order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "tools/convert/input.hpp"
#include "tools/convert/line.hpp"

namespace gloved::convert {

/// `automatic` looks for other formats' marks first and says so; `glove` takes the first line as a word, come what may.
enum class SourceFormat { automatic, glove };
enum class OnError { stop, skip };

struct SourceOptions {
    SourceFormat format = SourceFormat::automatic;
    std::size_t dim = 0;      ///< 0: found from the first lines
    std::uint64_t limit = 0;  ///< lines to read at most; 0: all
    OnError on_error = OnError::stop;
    std::size_t threads = 1;
};

/// A piece of the source. `text`, `text_offset` and `whole_lines` come from the reader, the rest from its lines.
struct Batch {
    std::uint64_t sequence = 0;  ///< 0, 1, 2 … in the order of the source
    std::vector<char> buffer;
    std::size_t text_bytes = 0;
    std::uint64_t text_offset = 0;  ///< of the first byte, in the inflated text
    bool final_newline = true;
    bool overlong = false;  ///< no line end within kMaxLineBytes: nothing else is set

    struct Skipped {
        LineProblem problem;
        std::uint64_t line = 0;    ///< in this batch, from 0
        std::uint64_t offset = 0;  ///< in the inflated text
    };

    std::uint64_t lines = 0;
    std::string keys;
    std::vector<std::size_t> key_ends;
    std::vector<std::uint64_t> line_numbers;  ///< one a row, in this batch, from 0
    std::vector<float> values;                ///< shape (rows, dim)
    std::vector<double> norms;                ///< canonical, one a row
    std::vector<Skipped> skipped;
    std::uint64_t first_line = 0;        ///< number of lines before this batch; known from `commit` on
    std::vector<std::uint64_t> scratch;  ///< one a row, for `inspect` to leave something in

    std::size_t rows() const { return key_ends.size(); }
    std::string_view key(std::size_t row) const {
        const std::size_t first = row == 0 ? 0 : key_ends[row - 1];
        return std::string_view(keys).substr(first, key_ends[row] - first);
    }
};

/// What was found in a source, beside its rows.
struct SourceSummary {
    std::size_t dim = 0;
    bool dim_found = false;  ///< found, not given
    std::uint64_t lines = 0;
    std::uint64_t rows = 0;
    std::uint64_t text_bytes = 0;
    bool whole = true;  ///< false when --limit ended the reading
    std::array<std::uint64_t, kLineFaults> skipped{};
    std::vector<std::string> skipped_examples;  ///< the first kShownProblems, with line and byte
    bool final_newline = true;

    std::uint64_t skipped_lines() const;
};

inline constexpr std::size_t kShownProblems = 20;
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

/// What to do with a source's rows.
struct SourceSink {
    /// Told dim once, before anything else; an error ends the reading. May be empty.
    std::function<Status(const SourceSummary&)> begin;
    /// Called on worker threads, several at once, with a parsed batch. May be empty.
    std::function<void(Batch&)> inspect;
    /// Called on the calling thread, in the order of the source. May be empty.
    std::function<Status(Batch&)> commit;
};

/// Reads `input` to its end. Errors: those of Input::read and of the sink; bad_source for text that is no GloVe text,
/// naming file, line, byte, token and remedy. Which fault is reported does not depend on the number of threads: the
/// first.
Result<SourceSummary> read_source(Input& input, const SourceOptions& options, const SourceSink& sink);

}  // namespace gloved::convert
