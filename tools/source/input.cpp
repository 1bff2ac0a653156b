#include "tools/source/input.hpp"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved::source {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
// A first member's header, the end record of an empty archive, and the marker of a split archive.
constexpr std::string_view kZipMagics[] = {"PK\x03\x04", "PK\x05\x06", "PK\x07\x08"};

}  // namespace

struct Input::Inflater {
    Inflater() {
        // 16: gzip only. Automatic detection would also accept zlib streams, which no download is.
        if (::inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();
    }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater() { ::inflateEnd(&stream); }

    z_stream stream{};
    bool member_ended = false;
    bool ended = false;
};

Input::Input(InputFile file, const std::atomic<bool>& stop, std::size_t block_bytes)
    : file_(std::move(file)), stop_(&stop), block_bytes_(block_bytes) {}
Input::Input(Input&&) noexcept = default;
Input::~Input() = default;

Result<Input> Input::open(const std::string& path, const std::atomic<bool>& stop,
                          const std::string& member, std::size_t block_bytes) {
    auto file = InputFile::open(path, NoWriter::wait, &stop);
    if (!file) return file.error();
    Input input(*std::move(file), stop, block_bytes);
    const bool seekable = input.file_.is_regular();
    if (seekable) (void)::posix_fadvise(input.file_.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
    if (Status filled = input.refill_block(); !filled) return filled.error();
    if (input.block_.starts_with(kGzipMagic)) input.inflater_ = std::make_unique<Inflater>();
    const std::string_view head = input.block_;
    if (std::any_of(std::begin(kZipMagics), std::end(kZipMagics),
                    [&](auto magic) { return head.starts_with(magic); })) {
        if (!seekable) {
            return error_with(ErrorCode::bad_source,
                              "{}: a zip archive cannot be read from a pipe, as its directory "
                              "stands at its end; save it to a file and give the file's name",
                              path);
        }
        auto opened = ZipMember::open(input.file_.fd(), path, member);
        if (!opened) return opened.error();
        input.zip_.emplace(*std::move(opened));
        input.member_ = input.zip_->name();
        input.block_.clear();
    }
    return input;
}

Status Input::check_member(const std::string& member) const {
    if (member.empty() || zip_) return {};
    return error_with(ErrorCode::bad_source,
                      "{}: --member {} is given, but this is not a zip archive; leave --member out",
                      name(), printable(member, 255));
}

std::optional<std::uint64_t> Input::checksum() const {
    if (zip_) return std::nullopt;
    return checksum_.value();
}

std::optional<std::uint32_t> Input::crc32() const {
    if (!zip_) return std::nullopt;
    return zip_->crc32();
}

Result<std::size_t> Input::read_source(std::span<char> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
        auto got = file_.read(buffer.subspan(filled));
        if (!got) return got;
        if (*got == 0) break;
        filled += *got;
    }
    checksum_.update(std::as_bytes(buffer.first(filled)));
    source_bytes_ += filled;
    return filled;
}

Status Input::refill_block() {
    block_.resize(block_bytes_);
    block_used_ = 0;
    auto got = read_source(block_);
    block_.resize(got ? *got : 0);
    return got ? Status() : Status(got.error());
}

Result<std::size_t> Input::read_plain(std::span<char> buffer) {
    const std::size_t kept = std::min(buffer.size(), block_.size() - block_used_);
    std::memcpy(buffer.data(), block_.data() + block_used_, kept);
    block_used_ += kept;
    if (kept == buffer.size()) return kept;
    auto more = read_source(buffer.subspan(kept));
    if (!more) return more;
    return kept + *more;
}

Result<std::size_t> Input::inflate(std::span<char> buffer) {
    z_stream& stream = inflater_->stream;
    std::size_t filled = 0;
    while (filled < buffer.size() && !inflater_->ended) {
        if (block_used_ == block_.size()) {
            if (Status got = refill_block(); !got) return got.error();
            if (block_.empty()) {
                inflater_->ended = true;
                if (inflater_->member_ended) break;
                return error_with(ErrorCode::bad_source,
                                  "{}: the gzip data ends too early, at byte {}; the download is "
                                  "not complete, fetch it again",
                                  name(), source_bytes_);
            }
        }
        const std::uint64_t at = source_bytes_ - (block_.size() - block_used_);
        if (inflater_->member_ended) {
            // Further gzip members continue the text; zeros are padding of tapes and block devices.
            if (block_[block_used_] == '\0') {
                ++block_used_;
                continue;
            }
            if (block_[block_used_] != kGzipMagic[0]) {
                return error_with(ErrorCode::bad_source,
                                  "{0}: other data follows the gzip data at byte {1}; fetch the "
                                  "download again, or take what is before it: head -c {1} FILE",
                                  name(), at);
            }
            ::inflateReset(&stream);
            inflater_->member_ended = false;
        }
        stream.next_in = reinterpret_cast<Bytef*>(block_.data() + block_used_);
        stream.avail_in = static_cast<uInt>(block_.size() - block_used_);
        stream.next_out = reinterpret_cast<Bytef*>(buffer.data() + filled);
        stream.avail_out =
            static_cast<uInt>(std::min<std::size_t>(buffer.size() - filled, 1U << 30));
        const uInt offered = stream.avail_out;
        const int state = ::inflate(&stream, Z_NO_FLUSH);
        filled += offered - stream.avail_out;
        block_used_ = block_.size() - stream.avail_in;
        if (state == Z_STREAM_END) {
            inflater_->member_ended = true;
        } else if (state == Z_MEM_ERROR) {
            throw std::bad_alloc();
        } else if (state != Z_OK && state != Z_BUF_ERROR) {
            return error_with(
                ErrorCode::bad_source,
                "{}: the gzip data is damaged near byte {} ({}); fetch the download again", name(),
                source_bytes_ - stream.avail_in,
                stream.msg == nullptr ? "preset dictionary" : stream.msg);
        }
    }
    return filled;
}

Result<std::size_t> Input::unzip(std::span<char> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
        if (stop_->load(std::memory_order_relaxed))
            return Error{ErrorCode::interrupted, "interrupted"};
        auto got =
            zip_->read(buffer.subspan(filled, std::min(buffer.size() - filled, kBlockBytes)));
        if (!got) return got;
        if (*got == 0) break;
        filled += *got;
    }
    return filled;
}

Result<std::size_t> Input::read(std::span<char> buffer) {
    if (zip_) return unzip(buffer);
    return inflater_ == nullptr ? read_plain(buffer) : inflate(buffer);
}

}  // namespace gloved::source
