#include "tools/source/byte_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace gloved::source {
namespace {

/// Memory grows with what is there.
constexpr std::size_t kPieceBytes = 1 << 18;

}  // namespace

Result<std::size_t> ByteReader::read(std::span<char> buffer) {
    if (stop_->load(std::memory_order_relaxed)) return Error{ErrorCode::interrupted, "interrupted"};
    const std::size_t held = std::min(buffer.size(), peeked_.size());
    std::memcpy(buffer.data(), peeked_.data(), held);
    drop_peeked(held);
    if (held == buffer.size()) return held;
    auto more = fill(buffer.subspan(held));
    if (!more) return more;
    return held + *more;
}

Result<std::string_view> ByteReader::peek(std::size_t bytes) {
    for (bool ended = false; peeked_.size() < bytes && !ended;) {
        const std::size_t held = peeked_.size();
        const std::size_t wanted = std::min(bytes - held, std::max(held, kPieceBytes));
        peeked_.resize(held + wanted);
        const auto more = fill(std::span(peeked_).subspan(held));
        peeked_.resize(held + (more ? *more : 0));
        if (!more) return more.error();
        ended = *more < wanted;
    }
    return std::string_view(peeked_).substr(0, bytes);
}

Result<std::uint64_t> ByteReader::skip(std::uint64_t bytes) {
    std::vector<char> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kPieceBytes)));
    // At once: each erase() moves all that is left.
    std::uint64_t skipped = std::min<std::uint64_t>(bytes, peeked_.size());
    drop_peeked(static_cast<std::size_t>(skipped));
    while (skipped < bytes) {
        const auto wanted = std::min<std::uint64_t>(bytes - skipped, buffer.size());
        const auto got = read(std::span(buffer).first(static_cast<std::size_t>(wanted)));
        if (!got) return got.error();
        skipped += *got;
        if (*got < wanted) break;
    }
    return skipped;
}

void ByteReader::drop_peeked(std::size_t bytes) {
    peeked_.erase(0, bytes);
    // What was looked at may be large.
    if (peeked_.empty()) peeked_.shrink_to_fit();
}

FileReader::FileReader(InputFile file, const std::atomic<bool>& stop)
    : ByteReader(file.name(), stop), file_(std::move(file)) {
    if (!file_.is_regular()) return;
    (void)::posix_fadvise(file_.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
    seekable_ = ::lseek(file_.fd(), 0, SEEK_CUR) == 0;  // stdin may begin elsewhere
}

Status FileReader::seek(std::uint64_t offset) {
    if (::lseek(file_.fd(), static_cast<off_t>(offset), SEEK_SET) < 0)
        return system_error(name(), "cannot read", errno);
    drop_peeked();
    position_ = offset;
    ended_ = false;
    checksum_.reset();
    if (offset == 0) checksum_.emplace();
    return {};
}

std::optional<std::uint64_t> FileReader::checksum() const {
    if (!checksum_) return std::nullopt;
    return checksum_->value();
}

Result<std::size_t> FileReader::fill(std::span<char> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size() && !ended_) {
        auto got = file_.read(buffer.subspan(filled));
        if (!got) return got;
        ended_ = *got == 0;
        filled += *got;
    }
    if (checksum_) checksum_->update(std::as_bytes(buffer.first(filled)));
    position_ += filled;
    return filled;
}

}  // namespace gloved::source
