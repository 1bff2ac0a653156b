// Reads a whole download (a source): divides it into batches, which several threads parse, and
// delivers the parsed batches in the order of the source.
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
#include "tools/source/oddity.hpp"

namespace gloved::source {

/// What to do at a line that cannot be parsed: end with an error, or skip and count it.
enum class OnError { stop, skip };

/// How to read a source.
struct SourceOptions {
    SourceFormat format = SourceFormat::automatic;
    std::size_t dim = 0;      ///< 0: found from the header or the first lines
    std::string words;        ///< file with an array's words; empty: see read_source
    std::string tensor;       ///< name in a safetensors file; empty: its only one
    std::uint64_t limit = 0;  ///< maximum number of lines or records, without a header; 0: all
    OnError on_error = OnError::stop;
    std::size_t threads = 1;  ///< number of threads that parse; 0: the calling thread parses
    // Bytes read for detect(), and bytes of a batch. Tests make them small to meet every boundary.
    std::size_t head_bytes = kHeadBytes;
    std::size_t chunk_bytes = kChunkBytes;
};

/// Facts about a source that was read: what its first bytes showed, and what followed. If the
/// source is binary, «line» means a record, or a row of an array.
struct SourceSummary : Detected {
    bool dim_found = false;        ///< dim was found, not given by SourceOptions
    std::string words;             ///< file with an array's words
    std::uint64_t lines = 0;       ///< number of lines, with a text's header line
    std::uint64_t rows = 0;        ///< number of rows, with duplicates
    std::uint64_t text_bytes = 0;  ///< size, unpacked
    bool whole = true;             ///< false if SourceOptions::limit ended the reading
    std::array<std::uint64_t, kLineFaults> skipped{};  ///< numbers of skipped lines, by LineFault
    std::vector<std::string> skipped_examples;  ///< the first kShownProblems, with line and byte
    bool final_newline = true;                  ///< the source ends with LF
    OddWords odd_words;  ///< of the rows, by line from 0; a text's header is line 0

    /// 1 if a text has a header, else 0.
    std::uint64_t header_lines() const { return header_rows && is_text(format) ? 1 : 0; }
    /// Number of lines without a text's header, as SourceOptions::limit counts them.
    std::uint64_t body_lines() const { return lines - header_lines(); }
    /// Number of skipped lines.
    std::uint64_t skipped_lines() const;
};

/// What to call a line of this format in messages: «line», «word» for records, «row» for an array.
std::string_view unit_of(SourceFormat format);

/// Functions that read_source calls, all but `inspect` on the calling thread. Any may be empty.
struct SourceSink {
    /// Called with messages for people: what was found, and warnings («warning: …»). Each names the
    /// input.
    std::function<void(const std::string&)> say;
    /// Called once, before any batch, with format and dim. An error ends the reading.
    std::function<Status(const SourceSummary&)> begin;
    /// Called with each parsed batch, on a worker thread; several calls run at the same time.
    std::function<void(Batch&)> inspect;
    /// Called with each batch, after `inspect`, in the order of the source. An error ends the
    /// reading.
    std::function<Status(Batch&)> commit;
};

/// Reads `input` to its end, or to the limit, and calls the functions of `sink`. Errors: those of
/// Input::read and of `sink`; bad_source, for content that is malformed or in none of the formats,
/// whose message has file, line, byte, token and remedy. If several lines are wrong, reports the
/// first, whatever the number of threads.
///
/// An array's words come from `options.words`. If that is empty, a file tokenizer.json beside a
/// safetensors file with one tensor is taken; otherwise it is an error, which names the file INPUT
/// with .words behind it if there is one.
///
/// Compares the number of rows in a header with the words read; blank lines and a line that is cut
/// off do not count. A difference is an error with OnError::stop and a warning with OnError::skip;
/// so is data after the last binary record. Checks neither if the limit ended the reading.
Result<SourceSummary> read_source(Input& input, const SourceOptions& options,
                                  const SourceSink& sink);

}  // namespace gloved::source
