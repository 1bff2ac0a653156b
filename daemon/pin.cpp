#include "daemon/pin.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

/// Locked in pieces, so that stopping the daemon never waits for a whole model.
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kMaxWait{2};
constexpr std::chrono::milliseconds kPoll{20};

/// Calls `goes_on` before each piece, and returns early when it says no.
template <class GoesOn>
Status lock_in_pieces(std::span<const std::byte> pages, const GoesOn& goes_on) {
    for (std::size_t at = 0; at < pages.size() && goes_on(); at += kPieceBytes) {
        const auto piece = pages.subspan(at, std::min(kPieceBytes, pages.size() - at));
        if (::mlock(piece.data(), piece.size()) == 0) continue;
        const std::string reason = std::generic_category().message(errno);
        ::munlock(pages.data(), pages.size());
        return Error{
            ErrorCode::unavailable,
            fmt::format("cannot lock the model's {} bytes in memory ({}; the limit is {}); "
                        "raise the limit with LimitMEMLOCK= or `ulimit -l`, or use --pin off",
                        pages.size(), reason, describe(memlock_limit()))};
    }
    return {};
}

/// Values, and planes where they are stored.
template <class GoesOn>
Status lock_model(const format::Model& model, const GoesOn& goes_on) {
    if (Status locked = lock_in_pieces(model.mapped_values(), goes_on); !locked) return locked;
    if (Status locked = lock_in_pieces(model.mapped_planes(), goes_on); !locked) {
        ::munlock(model.mapped_values().data(), model.mapped_values().size());
        return locked;
    }
    return {};
}

}  // namespace

std::optional<std::uint64_t> memlock_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return std::nullopt;
    return limit.rlim_cur;
}

std::string describe(const std::optional<std::uint64_t>& limit) {
    return limit ? fmt::format("{}", *limit) : "unlimited";
}

Status lock_values(const format::Model& model) {
    return lock_model(model, [] { return true; });
}

Pinning::Pinning(std::shared_ptr<const format::Model> model, Pin pin,
                 const std::atomic<std::uint64_t>& batches_answered)
    : model_(std::move(model)), batches_answered_(batches_answered) {
    if (pin == Pin::off) return;
    if (pin == Pin::on) {
        state_ = "on";
        return;
    }
    state_ = "pending";
    thread_ = std::thread([this] {
        wait_for_an_answer();
        lock_pages();
    });
}

Pinning::~Pinning() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
}

void Pinning::wait_for_an_answer() const {
    const auto deadline = Clock::now() + kMaxWait;
    while (!stop_ && batches_answered_ == 0 && Clock::now() < deadline)
        std::this_thread::sleep_for(kPoll);
}

void Pinning::lock_pages() {
    const Status locked = lock_model(*model_, [this] { return !stop_; });
    if (stop_) return;
    state_ = locked ? "on" : "refused";
    if (locked) {
        log_info("locked {} MiB of the model in memory",
                 (model_->mapped_values().size() + model_->mapped_planes().size()) >> 20);
    } else {
        log_info("{}; serving it unlocked", locked.error().message);
    }
}

}  // namespace gloved::daemon
