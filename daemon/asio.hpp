// Includes Boost.Asio with the settings that all files of the daemon share, and defines what they
// need besides it.
#pragma once

// Before Asio: Boost 1.74 uses std::exchange without including it.
#include <utility>  // IWYU pragma: keep

// ThreadSanitizer does not understand fences.
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK 1
#endif

// Boost 1.74 asks clang for the header of experimental coroutines, which libstdc++ lacks.
#ifdef __clang__
#define BOOST_ASIO_HAS_CO_AWAIT 1
#define BOOST_ASIO_HAS_STD_COROUTINE 1
#endif

#include <boost/asio.hpp>  // IWYU pragma: export

namespace gloved::daemon {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;
using boost::system::error_code;

/// The completion token for `co_await` that stores an operation's error in `error` instead of
/// throwing it.
inline auto ignoring(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

/// A condition variable for coroutines, all on one loop's thread: `notify` wakes the coroutines
/// that wait now. A notification is not stored, so check the condition before each wait. Nothing
/// can happen between check and wait, as there is only one thread.
class Signal {
  public:
    explicit Signal(const asio::any_io_executor& executor)
        : timer_(executor, asio::steady_timer::time_point::max()) {}

    /// Waits for the next `notify`. No coroutine of its own: every connection waits here, and a
    /// coroutine's frame takes 300 bytes.
    asio::awaitable<void> wait() {
        is_awaited_ = true;
        return timer_.async_wait(ignoring(ignored_));
    }
    void notify() {
        // Cancelling takes a lock and a search, and most notifications find nobody waiting.
        if (std::exchange(is_awaited_, false)) timer_.cancel();
    }

  private:
    bool is_awaited_ = false;
    asio::steady_timer timer_;
    error_code ignored_;
};

}  // namespace gloved::daemon
