// Compares a download with the checksums that are known of Stanford's GloVe files.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "common/result.hpp"
#include "tools/source/stanford.hpp"

namespace gloved::verify {

/// A file as it was read.
struct Download {
    std::string path;  ///< «-» for standard input
    std::uint64_t bytes = 0;
    std::string sha256;  ///< as of source::PublishedFile
};

/// What is known of a download.
struct DownloadVerdict {
    enum class State {
        same,     ///< its checksum is one of those known
        differs,  ///< it has the name of a file with another checksum, or is too short for it
        unknown,  ///< no checksum is published of a file of its name
    };
    State state = State::unknown;
    std::string name;    ///< of the published file: by the checksum, else by the file's name;
                         ///< empty: neither is known
    std::string detail;  ///< one sentence with size and checksum, and the remedy
};

/// Reads all of `path`, «-» for standard input, and shows progress. Errors: io, with the path;
/// interrupted, once `stop` is set.
Result<Download> read_download(const std::string& path, const std::atomic<bool>& stop);

/// Compares a download with published files. Those without a checksum are known by name alone.
DownloadVerdict judge(const Download& download, std::span<const source::PublishedFile> published);

}  // namespace gloved::verify
