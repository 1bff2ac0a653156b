#include "tools/convert/spool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gloved::convert {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

Spool::Spool(int directory_fd, const char* name, const std::string& path,
             std::uint64_t resident_bytes)
    : directory_fd_(directory_fd), name_(name), path_(path + "/" + name) {
    // Reserves address space; only touched pages become memory. If it is refused, all blocks go to
    // the file. Huge pages save a fault for every 4 KiB.
    void* const memory = ::mmap(nullptr, resident_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    (void)::madvise(memory, resident_bytes, MADV_HUGEPAGE);
    resident_ = static_cast<std::byte*>(memory);
    resident_bytes_ = resident_bytes;
}

Spool::~Spool() { clear(); }

Status Spool::open() {
    file_ = UniqueFd(::openat(directory_fd_, name_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file_) return system_error(path_, "cannot create", errno);
    if (::unlinkat(directory_fd_, name_, 0) != 0)
        return system_error(path_, "cannot remove the name", errno);
    return {};
}

void Spool::clear() {
    if (resident_ != nullptr)
        ::munmap(std::exchange(resident_, nullptr), std::exchange(resident_bytes_, 0));
    resident_used_ = 0;
    places_.clear();
    file_.reset();
}

Spool::Draft Spool::begin(std::size_t size) {
    Draft draft;
    draft.size = size;
    const std::lock_guard lock(mutex_);
    draft.number = static_cast<std::uint32_t>(places_.size());
    const std::size_t aligned = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (aligned <= resident_bytes_ - resident_used_) {
        draft.bytes = resident_ + std::exchange(resident_used_, resident_used_ + aligned);
        places_.push_back({draft.bytes, 0});
        return draft;
    }
    if (!buffers_.empty()) {
        draft.buffer = std::move(buffers_.back());
        buffers_.pop_back();
    }
    if (draft.buffer.size() < size) draft.buffer.resize(size);
    draft.bytes = draft.buffer.data();
    places_.push_back({nullptr, std::exchange(file_bytes_, file_bytes_ + size)});
    return draft;
}

Result<std::uint32_t> Spool::finish(Draft draft) {
    if (draft.buffer.empty()) return draft.number;
    const Status written =
        write_all_at(file_.get(), {draft.bytes, draft.size}, place_of(draft.number).offset, path_);
    if (!written) return written.error();
    const std::lock_guard lock(mutex_);
    buffers_.push_back(std::move(draft.buffer));
    return draft.number;
}

Spool::Place Spool::place_of(std::uint32_t block) const {
    const std::lock_guard lock(mutex_);
    return places_[block];
}

Status Spool::read(std::uint32_t block, std::size_t offset, std::span<std::byte> to) const {
    const Place place = place_of(block);
    if (place.memory != nullptr) {
        std::memcpy(to.data(), place.memory + offset, to.size());
        return {};
    }
    // Not mapped: pages of a mapping count as the process's own memory.
    return read_all_at(file_.get(), to, place.offset + offset, path_);
}

Status Spool::overwrite(std::uint32_t block, std::size_t offset, std::span<const std::byte> with) {
    const Place place = place_of(block);
    if (place.memory != nullptr) {
        std::memcpy(place.memory + offset, with.data(), with.size());
        return {};
    }
    return write_all_at(file_.get(), with, place.offset + offset, path_);
}

}  // namespace gloved::convert
