#include "daemon/pin.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include "common/error_with.hpp"
#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

/// Small enough that stopping the daemon does not wait.
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kMaxWait{2};
constexpr std::chrono::milliseconds kPoll{20};

/// Locks pages with mlock, piece by piece, as long as `may_continue()` is true.
template <class Condition>
Status lock_in_pieces(std::span<const std::byte> pages, const Condition& may_continue) {
    for (std::size_t at = 0; at < pages.size() && may_continue(); at += kPieceBytes) {
        const auto piece = pages.subspan(at, std::min(kPieceBytes, pages.size() - at));
        if (::mlock(piece.data(), piece.size()) == 0) continue;
        const std::string reason = std::generic_category().message(errno);
        ::munlock(pages.data(), pages.size());
        return error_with(ErrorCode::unavailable,
                          "cannot lock the model's {} bytes in memory ({}; the limit is {}); raise "
                          "the limit with LimitMEMLOCK= or `ulimit -l`, or use --pin off",
                          pages.size(), reason, describe(memlock_limit()));
    }
    return {};
}

/// Locks the values, and the planes if the model stores them.
template <class Condition>
Status lock_model(const format::Model& model, const Condition& may_continue) {
    if (Status locked = lock_in_pieces(model.mapped_values(), may_continue); !locked) return locked;
    if (Status locked = lock_in_pieces(model.mapped_planes(), may_continue); !locked) {
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

std::string_view to_string(PinState state) {
    switch (state) {
        case PinState::off:
            return "off";
        case PinState::pending:
            return "pending";
        case PinState::on:
            return "on";
        case PinState::refused:
            break;
    }
    return "refused";
}

Pinning::Pinning(std::shared_ptr<const format::Model> model, Pin pin,
                 const std::atomic<std::uint64_t>& batches_answered)
    : model_(std::move(model)), batches_answered_(batches_answered) {
    if (pin == Pin::off) return;
    if (pin == Pin::on) {
        state_ = PinState::on;
        return;
    }
    state_ = PinState::pending;
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
    state_ = locked ? PinState::on : PinState::refused;
    if (locked) {
        log_info("locked {} MiB of the model in memory",
                 (model_->mapped_values().size() + model_->mapped_planes().size()) >> 20);
    } else {
        log_info("{}; serving it unlocked", locked.error().message);
    }
}

}  // namespace gloved::daemon
