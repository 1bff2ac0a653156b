// A fuzz input as a download that gloved-convert reads, and what holds for every one.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/result.hpp"
#include "tests/fuzz/check.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/input.hpp"
#include "tools/source/source.hpp"

namespace gloved::fuzz {

/// A file in memory, with a name to open it by.
class MemoryFile {
  public:
    MemoryFile()
        : fd_(::memfd_create("download", MFD_CLOEXEC)),
          path_("/proc/self/fd/" + std::to_string(fd_.get())) {
        GLOVED_CHECK(fd_);
    }
    const std::string& path() const { return path_; }
    void write(std::string_view content) {
        GLOVED_CHECK(::ftruncate(fd_.get(), 0) == 0);
        GLOVED_CHECK(write_all_at(fd_.get(), std::as_bytes(std::span(content)), 0, path_));
    }

  private:
    UniqueFd fd_;
    std::string path_;
};

/// What a source was read as.
struct Reading {
    std::string error;  ///< empty: it was accepted
    bool packed = false;
    bool broken_off = false;  ///< there was more than kMaxLines
    source::SourceSummary summary;
    std::vector<std::string> keys;
    std::vector<float> values;
    std::string said;
};

/// A few bytes of gzip can be a million lines.
inline constexpr std::uint64_t kMaxLines = 5'000;

/// Reads the file to its end, and checks what is promised of every source: rows that a model can
/// take, or a message that names the file on one line.
inline Reading read_download(const std::string& path, const source::SourceOptions& options,
                             const std::string& member, std::size_t block_bytes) {
    static const std::atomic<bool> never_stop{false};
    Reading reading;
    const auto refused = [&](const Error& error) {
        if (reading.broken_off) return reading;
        GLOVED_CHECK(error.code == ErrorCode::bad_source);
        GLOVED_CHECK(error.message.starts_with(path + ": ") &&
                     error.message.find('\n') == std::string::npos);
        reading.error = error.message;
        return reading;
    };
    auto input = source::Input::open(path, never_stop, member, block_bytes);
    // Only packed data is refused this early.
    reading.packed = !input || input->compression() != "none";
    if (!input) return refused(input.error());

    std::size_t dim = 0;
    std::uint64_t lines = 0;
    source::SourceSink sink;
    sink.say = [&](const std::string& message) {
        GLOVED_CHECK(message.find('\n') == std::string::npos);
        reading.said += message + "\n";
    };
    sink.begin = [&](const source::SourceSummary& found) -> Status {
        GLOVED_CHECK(found.format != source::SourceFormat::automatic);
        GLOVED_CHECK(found.dim >= 1 && found.dim <= format::kMaxDim);
        GLOVED_CHECK(options.dim == 0 || found.dim == options.dim);
        dim = found.dim;
        return {};
    };
    sink.commit = [&](source::Batch& batch) -> Status {
        GLOVED_CHECK(batch.rows() <= batch.lines && batch.line_numbers.size() == batch.rows());
        GLOVED_CHECK(batch.values.size() >= batch.rows() * dim);
        for (std::size_t row = 0; row < batch.rows(); ++row) {
            const std::string_view key = batch.key(row);
            GLOVED_CHECK(!key.empty() && key.find_first_of(std::string_view("\0\t\n\r", 4)) ==
                                             std::string_view::npos);
            GLOVED_CHECK(batch.line_numbers[row] < batch.lines);
            reading.keys.emplace_back(key);
        }
        GLOVED_CHECK(batch.skipped.size() <= source::kShownProblems);
        const auto values = std::span(batch.values).first(batch.rows() * dim);
        GLOVED_CHECK(std::all_of(values.begin(), values.end(),
                                 [](float value) { return std::isfinite(value); }));
        reading.values.insert(reading.values.end(), values.begin(), values.end());
        lines += batch.lines;
        reading.broken_off = lines > kMaxLines;
        return reading.broken_off ? Status(Error{ErrorCode::interrupted, "enough"}) : Status();
    };
    auto summary = source::read_source(*input, options, sink);
    if (!summary) return refused(summary.error());
    reading.summary = *std::move(summary);
    GLOVED_CHECK(reading.summary.rows == reading.keys.size() && reading.summary.rows > 0);
    GLOVED_CHECK(reading.summary.rows + reading.summary.skipped_lines() <= reading.summary.lines);
    GLOVED_CHECK(options.on_error == source::OnError::skip || reading.summary.skipped_lines() == 0);
    GLOVED_CHECK(options.limit == 0 || reading.summary.rows <= options.limit);
    GLOVED_CHECK(!reading.said.empty() || options.dim != 0);
    return reading;
}

/// Checks that two readings gave the same, bit for bit. `limited`: by --limit; `other_chunks`: they
/// differ in more than threads.
inline void check_same(const Reading& one, const Reading& two, bool limited, bool other_chunks) {
    if (one.broken_off || two.broken_off) return;
    // What stands before damage in a packing is handed out by the chunk: a fault in that, or the
    // limit, may come first.
    const bool both_refused = !one.error.empty() && !two.error.empty();
    if (other_chunks && one.packed && (both_refused || limited)) return;
    if (one.error != two.error)
        std::fprintf(stderr, "%s\n%s\n", one.error.c_str(), two.error.c_str());
    GLOVED_CHECK(one.error == two.error);
    GLOVED_CHECK(one.said == two.said);
    if (!one.error.empty()) return;
    GLOVED_CHECK(one.keys == two.keys);
    GLOVED_CHECK(one.values.size() == two.values.size());
    GLOVED_CHECK(one.values.empty() || std::memcmp(one.values.data(), two.values.data(),
                                                   one.values.size() * sizeof(float)) == 0);
    const source::SourceSummary& a = one.summary;
    const source::SourceSummary& b = two.summary;
    GLOVED_CHECK(a.format == b.format && a.dim == b.dim && a.header_rows == b.header_rows &&
                 a.bom == b.bom);
    GLOVED_CHECK(a.lines == b.lines && a.rows == b.rows && a.text_bytes == b.text_bytes &&
                 a.whole == b.whole);
    GLOVED_CHECK(a.skipped == b.skipped && a.skipped_examples == b.skipped_examples);
    GLOVED_CHECK(a.final_newline == b.final_newline);
}

/// Reads the file with `options`, and again in other pieces by other threads. `variation` chooses
/// the pieces.
inline Reading read_in_several_ways(const std::string& path, source::SourceOptions options,
                                    unsigned variation, const std::string& member = {}) {
    constexpr std::size_t kHeads[] = {64, 300, 1024, 1 << 16};
    constexpr std::size_t kPieces[] = {4, 7, 64, 1000};
    constexpr std::size_t kMuch = 1 << 14;  // for an input that a fuzzer makes
    options.head_bytes = kHeads[variation % 4];
    options.chunk_bytes = kMuch;
    options.threads = 0;
    const Reading reading = read_download(path, options, member, kMuch);
    // Starting threads takes longer than all the rest, so that few inputs pay for it.
    if (variation / 16 % 16 == 1) {
        options.threads = 2;
        check_same(reading, read_download(path, options, member, kMuch), options.limit != 0, false);
    }
    options.threads = 0;
    options.chunk_bytes = kPieces[variation / 4 % 4];
    check_same(reading, read_download(path, options, member, options.chunk_bytes),
               options.limit != 0, true);
    return reading;
}

}  // namespace gloved::fuzz
