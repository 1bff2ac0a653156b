#include "tools/neighbors/processes.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/thread_pool.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::neighbors {
namespace {

/// MPI's own waits poll without a pause, which would take processors from those that compute.
constexpr auto kPause = std::chrono::milliseconds(1);

/// Begins a collective operation with `begin(&request)`, and sleeps until it is done.
template <class Begin>
Status complete(const std::atomic<bool>& stop, const Begin& begin) {
    MPI_Request request = MPI_REQUEST_NULL;
    begin(&request);
    int is_done = 0;
    for (;;) {
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        // clang-tidy does not take MPI_Test for a wait.
        if (is_done != 0) return {};  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
        // The job is about to be aborted, with this operation in it.
        if (stop) return source::interrupted();  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
        std::this_thread::sleep_for(kPause);
    }
}

std::size_t rank_in(MPI_Comm processes) {
    int rank = 0;
    MPI_Comm_rank(processes, &rank);
    return static_cast<std::size_t>(rank);
}

unsigned count_of(MPI_Comm processes) {
    int count = 0;
    MPI_Comm_size(processes, &count);
    return static_cast<unsigned>(count);
}

}  // namespace

struct Processes::Handles {
    MPI_Win window = MPI_WIN_NULL;
};

Processes::Processes(const std::atomic<bool>& stop)
    : stop_(stop), handles_(std::make_unique<Handles>()) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    rank_ = rank_in(MPI_COMM_WORLD);
    count_ = count_of(MPI_COMM_WORLD);
    look_at_host();
    make_counter();
}

Processes::~Processes() = default;

void Processes::look_at_host() {
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, static_cast<std::size_t>(length));

    MPI_Comm of_host = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &of_host);
    rank_on_host_ = rank_in(of_host);
    // mpirun may bind each process to processors of its own, or let all use all.
    cpu_set_t usable;
    CPU_ZERO(&usable);
    (void)::sched_getaffinity(0, sizeof usable, &usable);
    MPI_Allreduce(MPI_IN_PLACE, &usable, sizeof usable, MPI_BYTE, MPI_BOR, of_host);
    const unsigned share = static_cast<unsigned>(CPU_COUNT(&usable)) / count_of(of_host);
    processors_ = std::min(kernels::usable_processors(), std::max(1U, share));
    MPI_Comm_free(&of_host);
}

void Processes::make_counter() {
    const MPI_Aint bytes = rank_ == 0 ? sizeof(std::uint64_t) : 0;
    std::uint64_t* counter = nullptr;
    MPI_Win_allocate(bytes, sizeof(std::uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &counter,
                     &handles_->window);
    if (rank_ == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, handles_->window);
        *counter = count_;  // each process's first number is its rank
        MPI_Win_unlock(0, handles_->window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, handles_->window);
}

Status Processes::meet() {
    return complete(stop_, [](MPI_Request* request) { MPI_Ibarrier(MPI_COMM_WORLD, request); });
}

Status Processes::broadcast(std::vector<std::uint64_t>& numbers) {
    std::uint64_t count = numbers.size();
    Status sent = complete(stop_, [&](MPI_Request* request) {
        MPI_Ibcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, request);
    });
    if (!sent) return sent;
    numbers.resize(count);
    return complete(stop_, [&](MPI_Request* request) {
        MPI_Ibcast(numbers.data(), static_cast<int>(count), MPI_UINT64_T, 0, MPI_COMM_WORLD,
                   request);
    });
}

Status Processes::sum(std::span<std::uint64_t> numbers) {
    return complete(stop_, [&](MPI_Request* request) {
        MPI_Iallreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_UINT64_T,
                       MPI_SUM, MPI_COMM_WORLD, request);
    });
}

Status Processes::maximum(std::span<double> numbers) {
    return complete(stop_, [&](MPI_Request* request) {
        MPI_Iallreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE,
                       MPI_MAX, MPI_COMM_WORLD, request);
    });
}

std::size_t Processes::draw() {
    if (!has_drawn_) {
        // Without asking process 0, which may be copying the model to its GPU.
        has_drawn_ = true;
        return rank_;
    }
    const std::uint64_t one = 1;
    std::uint64_t drawn = 0;
    MPI_Fetch_and_op(&one, &drawn, MPI_UINT64_T, 0, 0, MPI_SUM, handles_->window);
    MPI_Win_flush(0, handles_->window);
    return drawn;
}

void Processes::answer_draws() {
    int is_there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
}

Status Processes::finish() {
    // A signal no longer matters: all is done.
    static const std::atomic<bool> kNeverStop{false};
    Status met =
        complete(kNeverStop, [](MPI_Request* request) { MPI_Ibarrier(MPI_COMM_WORLD, request); });
    if (!met) return met;
    MPI_Win_unlock_all(handles_->window);
    MPI_Win_free(&handles_->window);
    MPI_Finalize();
    return {};
}

void Processes::abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

}  // namespace gloved::neighbors
