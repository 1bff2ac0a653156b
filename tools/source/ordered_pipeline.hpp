// Parallel pipeline: several threads work on the items of a stream, and the results come in the
// order of the stream. The tools read downloads and models with it.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/result.hpp"

namespace gloved::source {

/// run_ordered without workers.
template <class Item, class Produce, class Work, class Consume>
Status run_in_turn(Produce& produce, Work& work, Consume& consume) {
    for (Item item;;) {
        const Result<bool> more = produce(item);
        if (!more) return more.error();
        if (!*more) return {};
        work(item);
        if (Status taken_in = consume(item); !taken_in) return taken_in;
    }
}

/// Calls `produce`, `work` and `consume`, in this order, for each item of a stream.
///
/// `Result<bool> produce(Item&)` fills an item, or returns false at the end of the stream. `Status
/// consume(Item&)` is called with the items in the order of the stream. Both run on the calling
/// thread. `void work(Item&)` runs on one of `threads` worker threads, or on the calling thread if
/// `threads` is 0. There are threads + 2 items, which are reused, so that their buffers are
/// allocated once and memory is bounded. Ends at the first error in the order of the stream: an
/// error of `produce` is returned after all items before it were consumed. Rethrows what `work`
/// throws.
template <class Item, class Produce, class Work, class Consume>
Status run_ordered(std::size_t threads, Produce produce, Work work, Consume consume) {
    if (threads == 0) return run_in_turn<Item>(produce, work, consume);
    struct Slot {
        Item item;
        bool done = false;
        std::exception_ptr thrown;
    };
    std::vector<Slot> ring(threads + 2);
    std::mutex mutex;
    std::condition_variable_any to_workers;
    std::condition_variable to_caller;
    std::size_t produced = 0;  // changed by this thread only, under the mutex
    std::size_t taken = 0;
    std::size_t consumed = 0;

    const auto worker = [&](const std::stop_token& stop) {
        std::unique_lock lock(mutex);
        for (;;) {
            to_workers.wait(lock, stop, [&] { return taken < produced; });
            if (stop.stop_requested()) return;
            Slot& slot = ring[taken++ % ring.size()];
            lock.unlock();
            try {
                work(slot.item);
            } catch (...) {
                slot.thrown = std::current_exception();
            }
            lock.lock();
            slot.done = true;
            to_caller.notify_one();
        }
    };
    std::vector<std::jthread> workers;  // stopped and joined on return, before what they use goes
    for (std::size_t i = 0; i < threads; ++i) workers.emplace_back(worker);

    bool ended = false;
    Status last;
    while (!ended || consumed < produced) {
        Slot& front = ring[consumed % ring.size()];
        bool front_done = false;
        {
            std::unique_lock lock(mutex);
            const bool full = produced - consumed == ring.size();
            if (consumed < produced && (full || ended))
                to_caller.wait(lock, [&] { return front.done; });
            front_done = consumed < produced && front.done;
        }
        if (front_done) {
            if (front.thrown) std::rethrow_exception(front.thrown);
            if (Status taken_in = consume(front.item); !taken_in) return taken_in;
            front.done = false;
            ++consumed;
            continue;
        }
        Result<bool> more = produce(ring[produced % ring.size()].item);
        if (!more) last = more.error();
        if (!more || !*more) {
            ended = true;
            continue;
        }
        {
            const std::lock_guard lock(mutex);
            ++produced;
        }
        to_workers.notify_one();
    }
    return last;
}

/// Makes the error for a job that the user has stopped.
inline Error interrupted() { return {ErrorCode::interrupted, "interrupted"}; }

/// Makes a `produce` for run_ordered that divides the indices below `count` into pieces of `step`:
/// it sets item.first and item.last to the piece [first, last). Error: interrupted, once `stop` is
/// true.
inline auto pieces_of(std::size_t count, std::size_t step, const std::atomic<bool>& stop) {
    return [count, step, &stop, next = std::size_t{0}](auto& item) mutable -> Result<bool> {
        if (stop) return interrupted();
        item.first = next;
        item.last = next = next + std::min(step, count - next);
        return item.first != item.last;
    };
}

}  // namespace gloved::source
