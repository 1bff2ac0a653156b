// LoadWorker: one thread of a load, which sends requests over its connections and times the
// replies; and OpenLoop: when each request of an open loop is due.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/connection.hpp"
#include "common/files.hpp"
#include "common/result.hpp"
#include "common/wire/reply_framer.hpp"
#include "tools/bench/load_report.hpp"
#include "tools/bench/load_requests.hpp"

namespace gloved::bench {

/// Spreads `rate` requests a second evenly over time and over `connections`. Request number i of
/// all goes to connection i % connections and is due i / rate seconds after the start, whatever
/// the daemon does. A latency that counts from then includes the time that a request could not be
/// sent because earlier ones were slow.
class OpenLoop {
  public:
    OpenLoop(double rate, std::uint64_t connections)
        : interval_ns_(1e9 / rate), connections_(connections) {}

    /// When request number `index` of `connection` is due, in nanoseconds after the start.
    std::int64_t due_ns(std::uint64_t connection, std::uint64_t index) const {
        const std::uint64_t number = index * connections_ + connection;
        return static_cast<std::int64_t>(static_cast<double>(number) * interval_ns_);
    }

    /// How many requests of `connection` are due at `now_ns` after the start.
    std::uint64_t count_due(std::uint64_t connection, std::int64_t now_ns) const {
        if (now_ns < 0) return 0;
        const double passed = static_cast<double>(now_ns) / interval_ns_;
        const auto all = static_cast<std::uint64_t>(passed);
        std::uint64_t count = all < connection ? 0 : (all - connection) / connections_ + 1;
        // Division and multiplication round differently: `due_ns` decides.
        while (count > 0 && due_ns(connection, count - 1) > now_ns) --count;
        while (due_ns(connection, count) <= now_ns) ++count;
        return count;
    }

  private:
    double interval_ns_;
    std::uint64_t connections_;
};

/// How long to wait for a connection, and for each reply that is asked for before a load.
inline constexpr auto kReplyTimeout = std::chrono::seconds(60);

/// What all workers of a load share. Times are nanoseconds of the monotonic clock.
struct LoadPlan {
    std::string socket;
    RequestPool pool;
    std::size_t parts = 0;  ///< of the mix
    /// What a quiet daemon answered to a request of the pool; nullptr if it is not checked.
    std::vector<std::unique_ptr<client::Reply>> expected{};
    std::size_t connections = 0;      ///< of all workers but the lone client
    std::size_t depth = 0;            ///< closed loop: requests ahead of replies, per connection
    std::optional<OpenLoop> open{};   ///< nullopt: closed loop
    std::int64_t start_ns = 0;        ///< when to begin to send
    std::int64_t end_ns = 0;          ///< what is due later is not sent
    std::int64_t give_up_ns = 0;      ///< when to stop waiting for replies
    std::atomic<bool> failed{false};  ///< a worker failed: all stop
};

/// Sends from one thread over non-blocking connections, as many requests as possible at once.
class LoadWorker {
  public:
    /// Connects connection number `first`, first + step … of the plan. The plan must outlive it.
    /// Errors: those of client::Connection::open; io.
    static Result<LoadWorker> create(LoadPlan& plan, std::size_t first, std::size_t step);
    /// Connects a client that asks one request at a time.
    static Result<LoadWorker> create_lone(LoadPlan& plan);

    /// Sends and reads from plan.start_ns on; returns when all replies are there, or at give_up_ns.
    /// Sets plan.failed if it fails. Errors: unavailable, if the daemon closes a connection;
    /// bad_request, if it does not speak the protocol; io; interrupted, after a signal.
    Status run();

    const LoadCounts& counts() const { return counts_; }

  private:
    /// One connection.
    struct Peer {
        explicit Peer(client::Connection opened) : connection(std::move(opened)) {}

        client::Connection connection;  // whose socket alone is used
        std::size_t number = 0;         // among the connections of the plan
        wire::ReplyFramer framer{};
        std::uint64_t sent = 0;               // requests, with those of `unwritten`
        std::uint64_t answered = 0;           // requests
        std::size_t next = 0;                 // of the pool, to send
        std::size_t awaited = 0;              // of the pool, whose reply comes next
        std::string_view unwritten{};         // requests that the socket has not taken yet
        bool waits_for_room = false;          // for `unwritten`
        std::vector<std::int64_t> sent_ns{};  // closed loop: a ring, by number of the request
        std::string reply{};                  // what has come of a checked one
    };

    LoadWorker(LoadPlan& plan, std::size_t depth, bool open);
    Status connect(std::size_t number, std::size_t first_request);
    Status drive();
    Status wait();
    Status take_event(std::uint32_t events, Peer& peer);
    Status fill(Peer& peer);
    std::uint64_t count_due(const Peer& peer, std::int64_t now_ns) const;
    std::uint64_t may_send(const Peer& peer, std::int64_t now_ns) const;
    void stamp(Peer& peer, std::uint64_t count, std::int64_t now_ns);
    Status wait_for_room(Peer& peer, bool wanted);
    Status read(Peer& peer);
    Status take_replies(Peer& peer, const char* begin, const char* end, std::int64_t now_ns);
    void end_reply(Peer& peer, std::int64_t now_ns);
    void check(Peer& peer, const client::Reply& expected);
    Error closed_by_daemon(const Peer& peer) const;
    std::int64_t next_due_ns() const;

    LoadPlan* plan_;
    std::size_t depth_;
    bool open_;
    UniqueFd epoll_;
    std::vector<std::unique_ptr<Peer>> peers_;
    std::uint64_t outstanding_ = 0;  // requests of all peers without a reply
    std::vector<char> buffer_;
    std::string last_error_;  // the last ERR code, for messages
    LoadCounts counts_;
};

/// The monotonic clock, in nanoseconds.
std::int64_t clock_ns();

}  // namespace gloved::bench
