#include "daemon/pin.hpp"

#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace gloved::daemon {
namespace {

/// Locked in pieces, so that stopping the daemon never waits for a whole model.
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kLongestWait{2};
constexpr std::chrono::milliseconds kPoll{20};

}  // namespace

Pinning::Pinning(std::shared_ptr<const format::Model> model, Pin pin,
                 const std::atomic<std::uint64_t>& batches_answered)
    : model_(std::move(model)), batches_answered_(batches_answered) {
    if (pin == Pin::off) return;
    state_ = "pending";
    thread_ = std::thread([this, pin] {
        wait_for_an_answer();
        lock_pages(model_->mapped_values(), pin == Pin::on);
    });
}

Pinning::~Pinning() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
}

void Pinning::wait_for_an_answer() const {
    const auto deadline = Clock::now() + kLongestWait;
    while (!stop_ && batches_answered_ == 0 && Clock::now() < deadline) std::this_thread::sleep_for(kPoll);
}

void Pinning::lock_pages(std::span<const std::byte> pages, bool asked_for) {
    for (std::size_t at = 0; at < pages.size() && !stop_; at += kPieceBytes) {
        const auto piece = pages.subspan(at, std::min(kPieceBytes, pages.size() - at));
        if (::mlock(piece.data(), piece.size()) == 0) continue;
        const std::string reason = std::generic_category().message(errno);
        ::munlock(pages.data(), pages.size());
        state_ = "refused";
        spdlog::log(asked_for ? spdlog::level::warn : spdlog::level::info,
                    "the model is not locked in memory ({}): raise the limit with LimitMEMLOCK= or `ulimit -l`, or say "
                    "--pin off",
                    reason);
        return;
    }
    if (stop_) return;
    state_ = "on";
    spdlog::info("{} MiB of the model are locked in memory", pages.size() >> 20);
}

}  // namespace gloved::daemon
