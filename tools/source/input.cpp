#include "tools/source/input.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <utility>

#include "common/error_with.hpp"
#include "common/input_file.hpp"
#include "common/quoting.hpp"

namespace gloved::source {

namespace {

/// Unpacks gzip, whose checksums and lengths libarchive does not check.
class GzipReader final : public ByteReader {
  public:
    /// Reads `below`, which must outlive it, `block_bytes` at a time.
    GzipReader(ByteReader& below, std::size_t block_bytes)
        : ByteReader(&below), below_(below), block_bytes_(block_bytes) {
        // 16: gzip only. Automatic detection would also accept zlib streams, which no download is.
        if (::inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
    }
    ~GzipReader() override { ::inflateEnd(&stream_); }

  private:
    Result<std::size_t> fill(std::span<char> buffer) override {
        std::size_t filled = 0;
        while (filled < buffer.size()) {
            const auto more = next_byte();
            if (!more) return more.error();
            if (!*more) break;
            auto got = inflate(buffer.subspan(filled));
            if (!got) return got;
            filled += *got;
        }
        return filled;
    }

    /// Goes to the next byte to unpack, within a gzip member; returns whether there is one.
    Result<bool> next_byte() {
        for (;; ++block_used_) {
            if (block_used_ == block_.size()) {
                block_.resize(block_bytes_);
                block_used_ = 0;
                const auto got = below_.read(block_);
                if (!got) return got.error();
                block_.resize(*got);
                read_bytes_ += *got;
            }
            if (!member_ended_ && block_.empty()) {
                return bad_source(
                    "{}: the gzip data ends too early, at byte {}; the download is "
                    "not complete, fetch it again",
                    name(), read_bytes_);
            }
            if (!member_ended_ || block_.empty()) return !block_.empty();
            // Further members continue the text; zeros are padding of tapes and block devices.
            if (block_[block_used_] == '\x1f') {
                ::inflateReset(&stream_);
                member_ended_ = false;
                return true;
            }
            if (block_[block_used_] == '\0') continue;
            return bad_source(
                "{0}: other data follows the gzip data at byte {1}; fetch the "
                "download again, or take what is before it: head -c {1} FILE",
                name(), read_bytes_ - (block_.size() - block_used_));
        }
    }

    /// Unpacks what fits into `buffer`.
    Result<std::size_t> inflate(std::span<char> buffer) {
        stream_.next_in = reinterpret_cast<Bytef*>(block_.data() + block_used_);
        stream_.avail_in = static_cast<uInt>(block_.size() - block_used_);
        stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
        const uInt room = static_cast<uInt>(std::min<std::size_t>(buffer.size(), 1U << 30));
        stream_.avail_out = room;
        const int state = ::inflate(&stream_, Z_NO_FLUSH);
        if (state == Z_MEM_ERROR) throw std::bad_alloc();
        if (state != Z_OK && state != Z_BUF_ERROR && state != Z_STREAM_END) {
            return bad_source(
                "{}: the gzip data is damaged near byte {} ({}); fetch the download again", name(),
                read_bytes_ - stream_.avail_in,
                stream_.msg == nullptr ? "preset dictionary" : stream_.msg);
        }
        member_ended_ = state == Z_STREAM_END;
        block_used_ = block_.size() - stream_.avail_in;
        return room - stream_.avail_out;
    }

    ByteReader& below_;
    std::size_t block_bytes_;
    std::string block_;  // read of `below_`, not yet unpacked from block_used_ on
    std::size_t block_used_ = 0;
    std::uint64_t read_bytes_ = 0;
    z_stream stream_{};
    bool member_ended_ = false;
};

}  // namespace

Result<Input> Input::open(const std::string& path, const std::atomic<bool>& stop,
                          const std::string& member, std::size_t block_bytes) {
    auto file = InputFile::open(path, NoWriter::wait, &stop);
    if (!file) return file.error();
    Input input;
    input.file_ = std::make_unique<FileReader>(*std::move(file), stop);
    input.text_ = input.file_.get();
    auto head = input.text_->peek(kPackingHeadBytes);
    if (!head) return head.error();
    const Packing* packing = packing_of(*head);
    if (packing == nullptr) return input;
    input.compression_ = packing->name;
    if (!packing->is_archive()) {
        if (packing->kind == Packing::Kind::gzip) {
            input.unpacked_ = std::make_unique<GzipReader>(*input.file_, block_bytes);
        } else {
            auto unpacked = ArchiveReader::open(*input.file_, nullptr, *packing, {}, block_bytes);
            if (!unpacked) return unpacked.error();
            input.unpacked_ = *std::move(unpacked);
        }
        input.text_ = input.unpacked_.get();
        head = input.text_->peek(kPackingHeadBytes);
        if (!head) return head.error();
        const Packing* const inner = packing_of(*head);
        // detect() refuses any other packing within this one.
        if (inner == nullptr || inner->kind != Packing::Kind::tar) return input;
        input.compression_ = "tar" + std::string(packing->suffix);
        packing = inner;
    }
    // An archive without files has no place to seek.
    const bool seeks = !input.unpacked_ && input.file_->is_seekable() && !head->starts_with("PK\5");
    auto archive = ArchiveReader::open(*input.text_, seeks ? input.file_.get() : nullptr, *packing,
                                       member, block_bytes);
    if (!archive) return archive.error();
    input.archive_ = *std::move(archive);
    input.text_ = input.archive_.get();
    return input;
}

Status Input::check_member(const std::string& member) const {
    if (member.empty() || archive_) return {};
    return bad_source("{}: --member {} is given, but this is not an archive; leave --member out",
                      name(), printable(member, 255));
}

int Input::plain_fd() const {
    const bool is_plain = text_ == file_.get() && file_->is_seekable() && name() != "-";
    return is_plain ? file_->fd() : -1;
}

std::uint64_t Input::text_bytes() const {
    if (archive_) return archive_->text_bytes();
    return unpacked_ ? 0 : file_->size_bytes();
}

std::optional<std::uint32_t> Input::crc32() const {
    return archive_ ? archive_->crc32() : std::nullopt;
}

}  // namespace gloved::source
