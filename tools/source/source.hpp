// A whole download, read in pieces by several threads and handed out in its own order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/chunker.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/input.hpp"
#include "tools/source/line.hpp"

namespace gloved::source {

enum class OnError { stop, skip };

struct SourceOptions {
    SourceFormat format = SourceFormat::automatic;
    std::size_t dim = 0;      ///< 0: found from the header or the first lines
    std::uint64_t limit = 0;  ///< lines or records to read at most, a header not counted; 0: all
    OnError on_error = OnError::stop;
    std::size_t threads = 1;  ///< that parse; 0: the calling one does
    // How much is read to find out what the source is, and how much at once afterwards. Smaller for
    // tests, to which every boundary matters.
    std::size_t head_bytes = kHeadBytes;
    std::size_t chunk_bytes = kChunkBytes;
};

/// What was found in a source, beside its rows. «Line» means a record where the source is binary.
struct SourceSummary {
    SourceFormat format = SourceFormat::glove;  ///< never automatic
    std::size_t dim = 0;
    bool dim_found = false;                    ///< found, not given
    bool bom = false;                          ///< a UTF-8 byte order mark was dropped
    std::optional<std::uint64_t> header_rows;  ///< what the header promises, where there is one
    std::uint64_t lines = 0;                   ///< a text's header line is one of them
    std::uint64_t rows = 0;
    std::uint64_t text_bytes = 0;
    bool whole = true;  ///< false when --limit ended the reading
    std::array<std::uint64_t, kLineFaults> skipped{};
    std::vector<std::string> skipped_examples;  ///< the first kShownProblems, with line and byte
    bool final_newline = true;

    std::uint64_t skipped_lines() const;
};

/// «line», or «word» for a format without lines.
std::string_view unit_of(SourceFormat format);

/// What to do with a source's rows. All functions but `inspect` are called on the calling thread.
/// Any may be empty.
struct SourceSink {
    /// Told what people should know: what was found, and what is doubtful («warning: …»). Each
    /// starts with the input's name.
    std::function<void(const std::string&)> say;
    /// Told format and dim once, before any rows; an error ends the reading.
    std::function<Status(const SourceSummary&)> begin;
    /// Called on worker threads, several at once, with a parsed batch.
    std::function<void(Batch&)> inspect;
    /// Called in the order of the source.
    std::function<Status(Batch&)> commit;
};

/// Reads `input` to its end. Errors: those of Input::read and of the sink; bad_source for content
/// that is of none of the formats, or contradicts the one that it is in, naming file, line, byte,
/// token and remedy. Which fault is reported does not depend on the number of threads: the first.
///
/// A header's count is held against the words read (blank and cut lines are none): a difference is
/// an error with OnError::stop and a warning with OnError::skip, and so is data behind the last
/// record of binary data. Neither is looked for when the limit ended the reading.
Result<SourceSummary> read_source(Input& input, const SourceOptions& options,
                                  const SourceSink& sink);

}  // namespace gloved::source
