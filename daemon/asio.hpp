// Includes Boost.Asio with the settings that all files share.
#pragma once

// Before Asio: Boost 1.74 uses std::exchange without including it.
#include <utility>

// ThreadSanitizer does not understand fences.
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK 1
#endif

#include <boost/asio.hpp>

namespace gloved::daemon {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;
using boost::system::error_code;

/// Awaits an operation and stores its error in `error` instead of throwing.
inline auto ignoring(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

/// A condition variable of coroutines on the loop thread: `notify` wakes those that wait now. It
/// stores no notification, so check the condition before each wait; on one thread nothing comes
/// between.
class Signal {
  public:
    explicit Signal(const asio::any_io_executor& executor)
        : timer_(executor, asio::steady_timer::time_point::max()) {}

    /// Not a coroutine of its own: every connection waits here, and a frame is 300 bytes.
    asio::awaitable<void> wait() { return timer_.async_wait(ignoring(ignored_)); }
    void notify() { timer_.cancel(); }

  private:
    asio::steady_timer timer_;
    error_code ignored_;
};

}  // namespace gloved::daemon
