#include "tools/bench/load_worker.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <limits>
#include <thread>

#include "cli/signals.hpp"
#include "common/error_with.hpp"

namespace gloved::bench {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
/// Of an open loop that has fallen behind: so that it reads replies in between.
constexpr std::uint64_t kMaxRequestsPerWrite = 4096;
/// How often a worker that waits looks whether it has to stop.
constexpr std::int64_t kLookUpNs = 100'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr const char* kSocketName = "the daemon's socket";

}  // namespace

std::int64_t clock_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

LoadWorker::LoadWorker(LoadPlan& plan, std::size_t depth, bool open)
    : plan_(&plan),
      depth_(depth),
      open_(open),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      buffer_(kBufferBytes),
      counts_(plan.parts) {}

Result<LoadWorker> LoadWorker::create(LoadPlan& plan, std::size_t first, std::size_t step) {
    LoadWorker worker(plan, plan.depth, plan.open.has_value());
    for (std::size_t number = first; number < plan.connections; number += step) {
        // Each begins elsewhere, so that the daemon is not asked the same by all at once.
        const std::size_t request = number * plan.pool.size() / plan.connections;
        if (Status done = worker.connect(number, request); !done) return done.error();
    }
    return worker;
}

Result<LoadWorker> LoadWorker::create_lone(LoadPlan& plan) {
    LoadWorker worker(plan, 1, false);
    if (Status done = worker.connect(0, plan.pool.size() / 2); !done) return done.error();
    return worker;
}

Status LoadWorker::connect(std::size_t number, std::size_t first_request) {
    auto connection = client::Connection::open({plan_->socket}, kReplyTimeout);
    if (!connection) return connection.error();
    auto peer = std::make_unique<Peer>(*std::move(connection));
    peer->number = number;
    peer->next = peer->awaited = first_request;
    if (!open_) peer->sent_ns.resize(std::bit_ceil(depth_));
    epoll_event event{EPOLLIN, {.ptr = peer.get()}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer->connection.fd(), &event) != 0)
        return system_error(kSocketName, "cannot wait for it", errno);
    peers_.push_back(std::move(peer));
    return {};
}

Status LoadWorker::run() {
    // Waits of an open loop end in time; by default up to 50 µs late.
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    std::this_thread::sleep_for(std::chrono::nanoseconds(plan_->start_ns - clock_ns()));
    Status done = drive();
    if (!done) plan_->failed = true;
    for (const auto& peer : peers_) {
        counts_.unanswered += peer->sent - peer->answered;
        if (!open_) continue;
        const std::uint64_t due = count_due(*peer, plan_->end_ns);
        counts_.unsent += due - std::min(due, peer->sent);
    }
    return done;
}

Status LoadWorker::drive() {
    for (const auto& peer : peers_) {
        if (Status filled = fill(*peer); !filled) return filled;
    }
    while (true) {
        const std::int64_t now = clock_ns();
        if (open_) {
            for (const auto& peer : peers_) {
                if (peer->waits_for_room) continue;
                if (Status filled = fill(*peer); !filled) return filled;
            }
        }
        if (now >= plan_->end_ns && (outstanding_ == 0 || now >= plan_->give_up_ns)) return {};
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        if (plan_->failed) return {};
        if (Status waited = wait(); !waited) return waited;
    }
}

/// Waits until a socket is ready or a request is due, and serves the sockets.
Status LoadWorker::wait() {
    const std::int64_t now = clock_ns();
    const std::int64_t end = now < plan_->end_ns ? plan_->end_ns : plan_->give_up_ns;
    const std::int64_t wait_ns =
        std::clamp<std::int64_t>(std::min(end, next_due_ns()) - now, 0, kLookUpNs);
    int timeout_ms = 0;
    if (open_ && wait_ns > 0) {
        // epoll_wait counts whole milliseconds, in which many requests become due.
        pollfd ready{epoll_.get(), POLLIN, 0};
        const timespec time{0, static_cast<long>(wait_ns)};
        ::ppoll(&ready, 1, &time, nullptr);
    } else {
        timeout_ms = static_cast<int>(wait_ns / 1'000'000) + 1;
    }
    std::array<epoll_event, 128> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
    if (count < 0 && errno != EINTR) return system_error(kSocketName, "cannot wait", errno);
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (Status done = take_event(event.events, *static_cast<Peer*>(event.data.ptr)); !done)
            return done;
    }
    return {};
}

Status LoadWorker::take_event(std::uint32_t events, Peer& peer) {
    if ((events & EPOLLOUT) != 0) {
        if (Status done = wait_for_room(peer, false); !done) return done;
    }
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
        if (Status done = read(peer); !done) return done;
    }
    return peer.waits_for_room ? Status() : fill(peer);
}

std::int64_t LoadWorker::next_due_ns() const {
    std::int64_t next = kNever;
    if (!open_) return next;
    for (const auto& peer : peers_) {
        if (peer->waits_for_room) continue;
        next = std::min(next, plan_->start_ns + plan_->open->due_ns(peer->number, peer->sent));
    }
    // After the end nothing is sent.
    return next < plan_->end_ns ? next : kNever;
}

/// Open loop: how many requests are due at `now_ns`, of those that are due before the end.
std::uint64_t LoadWorker::count_due(const Peer& peer, std::int64_t now_ns) const {
    const std::int64_t until_ns = std::min(now_ns, plan_->end_ns - 1);
    return plan_->open->count_due(peer.number, until_ns - plan_->start_ns);
}

/// How many requests to send now.
std::uint64_t LoadWorker::may_send(const Peer& peer, std::int64_t now_ns) const {
    if (!open_) return now_ns < plan_->end_ns ? depth_ - (peer.sent - peer.answered) : 0;
    const std::uint64_t due = count_due(peer, now_ns);
    return std::min(due - std::min(due, peer.sent), kMaxRequestsPerWrite);
}

/// Notes when the next `count` requests are sent.
void LoadWorker::stamp(Peer& peer, std::uint64_t count, std::int64_t now_ns) {
    for (std::uint64_t i = peer.sent; i < peer.sent + count; ++i) {
        if (open_)
            counts_.lateness.add(now_ns - plan_->start_ns - plan_->open->due_ns(peer.number, i));
        else
            peer.sent_ns[i & (peer.sent_ns.size() - 1)] = now_ns;
    }
}

/// Sends what may be sent, as far as the socket has room.
Status LoadWorker::fill(Peer& peer) {
    while (true) {
        if (peer.unwritten.empty()) {
            const std::int64_t now = clock_ns();
            const std::size_t count = static_cast<std::size_t>(
                std::min<std::uint64_t>(may_send(peer, now), plan_->pool.size() - peer.next));
            if (count == 0) return {};
            stamp(peer, count, now);
            peer.unwritten = plan_->pool.lines(peer.next, peer.next + count);
            peer.next = (peer.next + count) % plan_->pool.size();
            peer.sent += count;
            outstanding_ += count;
        }
        const ssize_t taken = ::send(peer.connection.fd(), peer.unwritten.data(),
                                     peer.unwritten.size(), MSG_NOSIGNAL);
        if (taken < 0 && errno == EINTR) continue;
        if (taken < 0 && errno != EAGAIN) {
            // What it sent before it closed may say why.
            if (errno == EPIPE || errno == ECONNRESET) return read(peer);
            return system_error(kSocketName, "cannot send", errno);
        }
        if (taken > 0) peer.unwritten.remove_prefix(static_cast<std::size_t>(taken));
        if (!peer.unwritten.empty()) return wait_for_room(peer, true);
    }
}

Status LoadWorker::wait_for_room(Peer& peer, bool wanted) {
    if (peer.waits_for_room == wanted) return {};
    epoll_event event{wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, {.ptr = &peer}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.connection.fd(), &event) != 0)
        return system_error(kSocketName, "cannot wait for it", errno);
    peer.waits_for_room = wanted;
    return {};
}

Status LoadWorker::read(Peer& peer) {
    const ssize_t got = ::recv(peer.connection.fd(), buffer_.data(), buffer_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return closed_by_daemon(peer);
    if (got < 0) return system_error(kSocketName, "cannot read", errno);
    return take_replies(peer, buffer_.data(), buffer_.data() + got, clock_ns());
}

Error LoadWorker::closed_by_daemon(const Peer& peer) const {
    return error_with(ErrorCode::unavailable,
                      "the daemon closed a connection with {} unanswered requests{}",
                      peer.sent - peer.answered,
                      last_error_.empty() ? "" : "; its last error was " + last_error_);
}

Status LoadWorker::take_replies(Peer& peer, const char* begin, const char* end,
                                std::int64_t now_ns) {
    while (begin < end) {
        if (peer.answered == peer.sent) {
            // The lines that answer no request, «busy» and «idle», end a connection.
            last_error_.assign(begin, std::find(begin, end, '\n'));
            return closed_by_daemon(peer);
        }
        const char* const reply_end = peer.framer.take(begin, end);
        if (peer.framer.broken() || peer.framer.is_json()) {
            return Error{ErrorCode::bad_request,
                         "what listens there does not speak gloved's protocol"};
        }
        if (plan_->expected[peer.awaited])
            peer.reply.append(begin, reply_end != nullptr ? reply_end : end);
        if (reply_end == nullptr) return {};
        begin = reply_end;
        end_reply(peer, now_ns);
    }
    return {};
}

/// Counts the reply that `peer.framer` has found.
void LoadWorker::end_reply(Peer& peer, std::int64_t now_ns) {
    const std::size_t part = plan_->pool.part(peer.awaited);
    if (peer.framer.ok()) {
        const std::int64_t since =
            open_ ? plan_->start_ns + plan_->open->due_ns(peer.number, peer.answered)
                  : peer.sent_ns[peer.answered & (peer.sent_ns.size() - 1)];
        counts_.latencies[part].add(now_ns - since);
        counts_.answers_in_time[part] += now_ns <= plan_->end_ns ? 1 : 0;
    } else {
        last_error_ = peer.framer.code();
        counts_.add_error(part, peer.framer.code());
    }
    if (const auto& expected = plan_->expected[peer.awaited]) {
        if (peer.framer.ok()) check(peer, *expected);
        peer.reply.clear();
    }
    ++peer.answered;
    --outstanding_;
    if (++peer.awaited == plan_->pool.size()) peer.awaited = 0;
}

/// Compares a whole reply, except for its status line, in which a time stands.
void LoadWorker::check(Peer& peer, const client::Reply& expected) {
    ++counts_.checked;
    const std::string_view lines = std::string_view(peer.reply).substr(peer.reply.find('\n') + 1);
    if (expected.status.ok && lines == expected.body()) return;
    ++counts_.wrong;
    if (counts_.first_wrong) return;
    counts_.first_wrong = WrongAnswer{
        std::string(plan_->pool.lines(peer.awaited, peer.awaited + 1)), expected.text, peer.reply};
}

}  // namespace gloved::bench
