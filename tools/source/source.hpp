// Reads a whole download: several threads parse batches, which come out in the order of the source.
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
    std::uint64_t limit = 0;  ///< maximum of lines or records, a header not counted; 0: all
    OnError on_error = OnError::stop;
    std::size_t threads = 1;  ///< that parse; 0: the calling thread parses
    // Bytes read for detect(), and bytes of a batch. Tests set them small to meet every boundary.
    std::size_t head_bytes = kHeadBytes;
    std::size_t chunk_bytes = kChunkBytes;
};

/// What a source contains beside its rows. «Line» means a record where the source is binary.
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

/// Callbacks of read_source. All but `inspect` run on the calling thread. Any may be empty.
struct SourceSink {
    /// Gets messages for people: what was found, and doubts («warning: …»). Each names the input.
    std::function<void(const std::string&)> say;
    /// Gets format and dim once, before any rows; an error ends the reading.
    std::function<Status(const SourceSummary&)> begin;
    /// Gets a parsed batch on a worker thread; several run at once.
    std::function<void(Batch&)> inspect;
    /// Gets the batches in the order of the source.
    std::function<Status(Batch&)> commit;
};

/// Reads `input` to its end. Errors: those of Input::read and of the sink; bad_source for content
/// that is malformed or of none of the formats, naming file, line, byte, token and remedy. Always
/// reports the first fault, whatever the number of threads. Compares a header's count with the
/// words read (blank and cut lines do not count). A difference is an error with OnError::stop and a
/// warning with OnError::skip; so is data after the last binary record. Checks neither if the limit
/// ended the reading.
Result<SourceSummary> read_source(Input& input, const SourceOptions& options,
                                  const SourceSink& sink);

}  // namespace gloved::source
