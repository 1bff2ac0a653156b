// ByteReader: a layer between a download on disk and its text. FileReader: the lowest one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/format/layout.hpp"
#include "common/input_file.hpp"
#include "common/result.hpp"

namespace gloved::source {

/// Bytes that are read once, from beginning to end. Not safe for concurrent use.
class ByteReader {
  public:
    virtual ~ByteReader() = default;
    ByteReader(const ByteReader&) = delete;
    ByteReader& operator=(const ByteReader&) = delete;

    /// Fills `buffer` with the next bytes and returns their number. Fewer than the buffer's size
    /// mean the end. Errors: interrupted, once `stop` is true; io; bad_source, for packed data that
    /// is damaged or ends too early, with the byte offset.
    Result<std::size_t> read(std::span<char> buffer);
    /// The next bytes, which stay to be read. Fewer than `bytes` mean the end. Errors: as `read`.
    Result<std::string_view> peek(std::size_t bytes);
    /// Puts the last bytes that were read back, to be read again.
    void unread(std::span<const char> bytes) { peeked_.insert(0, bytes.data(), bytes.size()); }
    /// Passes over the next bytes, and returns their number. Fewer than `bytes` mean the end.
    /// Errors: as `read`.
    Result<std::uint64_t> skip(std::uint64_t bytes);
    /// What messages call the download.
    const std::string& name() const { return name_; }
    const std::atomic<bool>& stop() const { return *stop_; }

  protected:
    /// `stop` must outlive the ByteReader.
    ByteReader(std::string name, const std::atomic<bool>& stop)
        : name_(std::move(name)), stop_(&stop) {}
    /// A layer above `below`.
    explicit ByteReader(const ByteReader* below) : ByteReader(below->name_, *below->stop_) {}
    /// Reads what is behind the peeked bytes, as `read` does.
    virtual Result<std::size_t> fill(std::span<char> buffer) = 0;
    /// Forgets the first peeked bytes, or all of them.
    void drop_peeked(std::size_t bytes = std::string::npos);

  private:
    std::string name_;
    const std::atomic<bool>* stop_;
    std::string peeked_;  // to be read before what is behind
};

/// The bytes of a file as they lie on disk.
class FileReader final : public ByteReader {
  public:
    FileReader(InputFile file, const std::atomic<bool>& stop);

    /// Whether it is a regular file that is read from its beginning, so that `seek` works.
    bool is_seekable() const { return seekable_; }
    int fd() const { return file_.fd(); }
    /// Continues at `offset`. Error: io.
    Status seek(std::uint64_t offset);
    /// Offset of the next read.
    std::uint64_t position() const { return position_; }
    /// Size of a regular file; of any other 0.
    std::uint64_t size_bytes() const { return file_.size_bytes(); }
    /// XXH3-64 of the bytes before position(); nullopt if some were passed over.
    std::optional<std::uint64_t> checksum() const;

  private:
    Result<std::size_t> fill(std::span<char> buffer) override;

    InputFile file_;
    bool seekable_ = false;
    bool ended_ = false;  // a terminal or a FIFO may go on behind its end
    std::uint64_t position_ = 0;
    std::optional<format::Checksum> checksum_ = format::Checksum();
};

}  // namespace gloved::source
