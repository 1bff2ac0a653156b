// The fake itself: a fake that forgives what a GPU does not would make every test on it worthless.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_grid.hpp"
#include "kernels/planes/shape.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"

namespace gloved::tests {
namespace {

using fake_cuda::Settings;
using namespace kernels::cuda;

constexpr DeviceShape kShape{4, 227 * 1024, 228 * 1024, false};

class FakeCuda : public testing::Test {
  protected:
    void SetUp() override {
        testing::FLAGS_gtest_death_test_style = "threadsafe";
        fake_cuda::reset(Settings{});
    }
};

void* device_memory(std::size_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(cudaMalloc(&address, bytes), cudaSuccess);
    return address;
}

cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

cudaEvent_t make_event() {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    return event;
}

Settings settings_with(const std::function<void(Settings&)>& change) {
    Settings settings;
    change(settings);
    return settings;
}

TEST_F(FakeCuda, MemoryKeepsWhatIsCopiedAndShowsWhatWasNot) {
    const cudaStream_t stream = make_stream();
    auto* const memory = static_cast<unsigned char*>(device_memory(100));
    std::vector<unsigned char> bytes(100, 1);
    EXPECT_EQ(cudaMemcpyAsync(memory + 10, bytes.data(), 20, cudaMemcpyDefault, stream),
              cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(memory + 99, 7, 1, stream), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(bytes.data(), memory, 100, cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_EQ(bytes[i], i == 99 ? 7 : i >= 10 && i < 30 ? 1 : 0xA5) << i;
    }
    EXPECT_EQ(fake_cuda::live().allocations, 1U);
    EXPECT_EQ(fake_cuda::live().device_bytes, 100U);
    EXPECT_EQ(fake_cuda::live().streams, 1U);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{});
}

TEST_F(FakeCuda, EndsWhoeverMisusesMemory) {
    const cudaStream_t stream = make_stream();
    auto* const memory = static_cast<unsigned char*>(device_memory(100));
    std::vector<unsigned char> bytes(200);
    EXPECT_DEATH(bytes[0] = *memory, "");
    EXPECT_DEATH(*memory = 1, "");
    EXPECT_DEATH((void)cudaMemcpyAsync(memory, bytes.data(), 101, cudaMemcpyDefault, stream),
                 "101 bytes from byte 0");
    EXPECT_DEATH((void)cudaMemcpyAsync(memory + 90, bytes.data(), 11, cudaMemcpyDefault, stream),
                 "byte 90 .* of 100");
    EXPECT_DEATH((void)cudaMemcpyAsync(bytes.data(), memory - 1, 2, cudaMemcpyDefault, stream),
                 "not allocated");
    EXPECT_DEATH((void)cudaMemcpyAsync(bytes.data(), memory, 2, cudaMemcpyHostToDevice, stream),
                 "contradicts");
    EXPECT_DEATH((void)cudaMemcpyAsync(memory, bytes.data(), 2, cudaMemcpyDefault, nullptr),
                 "default stream");
    EXPECT_DEATH((void)cudaMemsetAsync(bytes.data(), 0, 2, stream), "address of the host");
    EXPECT_DEATH((void)cudaFree(memory + 1), "not the address");
    EXPECT_DEATH((void)cudaFree(bytes.data()), "not the address");
    EXPECT_DEATH((void)cudaFreeHost(memory), "not the address");
    EXPECT_DEATH(fake_cuda::reset({}), "reset while there are 1 allocations \\(100 bytes\\)");
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_DEATH((void)cudaFree(memory), "freed twice");
    EXPECT_DEATH((void)cudaMemcpyAsync(memory, bytes.data(), 1, cudaMemcpyDefault, stream),
                 "not allocated");
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_DEATH((void)cudaStreamDestroy(stream), "no such stream");
    EXPECT_DEATH((void)cudaStreamSynchronize(stream), "no such stream");
}

TEST_F(FakeCuda, EndsWhoeverMixesDevices) {
    fake_cuda::reset(settings_with([](Settings& settings) { settings.devices = 2; }));
    const cudaStream_t first = make_stream();
    const cudaEvent_t event = make_event();
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    const cudaStream_t second = make_stream();
    auto* const memory = static_cast<float*>(device_memory(400));
    float value = 1;
    EXPECT_DEATH((void)cudaMemcpyAsync(memory, &value, 4, cudaMemcpyDefault, first),
                 "device 1 on a stream of device 0");
    EXPECT_DEATH((void)cudaEventRecord(event, second), "event of device 0 on a stream of device 1");
    EXPECT_DEATH((void)launch_pad_rows(memory, 1, 3, 4, memory + 4, first),
                 "stream of device 0 while device 1");
    EXPECT_EQ(launch_pad_rows(memory, 1, 3, 4, memory + 4, second), cudaSuccess);
    // Each thread has a current device of its own.
    std::thread([&] {
        int device = -1;
        EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
        EXPECT_EQ(device, 0);
    }).join();
    EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    for (const cudaStream_t stream : {first, second})
        EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(FakeCuda, HasOnlySoMuchMemory) {
    fake_cuda::reset(settings_with([](Settings& settings) {
        settings.devices = 2;
        settings.memory_bytes = 1000;
    }));
    void* const first = device_memory(600);
    void* none = nullptr;
    EXPECT_EQ(cudaMalloc(&none, 401), cudaErrorMemoryAllocation);
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    EXPECT_EQ(free, 400U);
    EXPECT_EQ(total, 1000U);
    void* const second = device_memory(400);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    void* const third = device_memory(1000);
    for (void* const memory : {first, second, third}) EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(FakeCuda, WithoutADeviceEverythingSaysSo) {
    for (const auto& [devices, code] :
         {std::pair{0, cudaErrorNoDevice}, {-1, cudaErrorInsufficientDriver}}) {
        fake_cuda::reset(settings_with([&](Settings& settings) { settings.devices = devices; }));
        int count = 7;
        EXPECT_EQ(cudaGetDeviceCount(&count), code);
        EXPECT_EQ(count, 0);
        void* memory = nullptr;
        EXPECT_EQ(cudaMalloc(&memory, 1), code);
        EXPECT_EQ(cudaGetLastError(), code);
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    }
}

TEST_F(FakeCuda, FailsTheCallThatItIsTold) {
    fake_cuda::arm({2, cudaErrorMemoryAllocation});
    void* first = device_memory(10);
    void* second = nullptr;
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);  // releasing is not counted
    EXPECT_EQ(cudaMalloc(&second, 10), cudaErrorMemoryAllocation);
    EXPECT_EQ(second, nullptr);
    EXPECT_EQ(fake_cuda::injected(), "cudaMalloc");
    EXPECT_EQ(fake_cuda::calls(), 2U);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    second = device_memory(10);
    EXPECT_EQ(fake_cuda::count_of("cudaMalloc"), 3U);
    for (void* const memory : {first, second}) EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(FakeCuda, AStickyErrorStays) {
    for (const int code : {700, 710, 714, 715, 716, 717, 718, 719, 999})
        EXPECT_TRUE(fake_cuda::is_sticky(code));
    for (const int code : {1, 2, 100, 101, 801}) EXPECT_FALSE(fake_cuda::is_sticky(code));
    const cudaStream_t stream = make_stream();
    auto* const memory = static_cast<float*>(device_memory(100));
    fake_cuda::arm({}, {2, cudaErrorIllegalAddress});
    EXPECT_EQ(launch_pad_rows(memory, 1, 3, 4, memory + 4, stream), cudaSuccess);
    EXPECT_EQ(launch_pad_rows(memory, 1, 3, 4, memory + 4, stream), cudaErrorIllegalAddress);
    EXPECT_EQ(fake_cuda::injected(), "launch_pad_rows");
    EXPECT_EQ(fake_cuda::launches(), 2U);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    std::thread([] { EXPECT_EQ(cudaSetDevice(0), cudaErrorIllegalAddress); }).join();
    // The host's part of a resource is gone all the same.
    EXPECT_EQ(cudaFree(memory), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
    EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{});
    fake_cuda::reset({});
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(FakeCuda, ACallHangsUntilItIsReleasedAndOthersGoOn) {
    fake_cuda::arm({}, {}, 2);
    void* const first = device_memory(10);
    EXPECT_EQ(fake_cuda::hanging(), 0U);
    std::atomic<bool> returned = false;
    std::thread hung([&] {
        void* const second = device_memory(10);
        returned = true;
        EXPECT_EQ(cudaFree(second), cudaSuccess);
    });
    while (fake_cuda::hanging() == 0) std::this_thread::yield();
    void* const third = device_memory(10);
    EXPECT_FALSE(returned);
    EXPECT_DEATH(
        {
            (void)cudaFree(first);
            (void)cudaFree(third);
            fake_cuda::reset({});
        },
        "reset while a call hangs");
    fake_cuda::release();
    hung.join();
    EXPECT_TRUE(returned);
    EXPECT_EQ(fake_cuda::hanging(), 0U);
    EXPECT_EQ(fake_cuda::count_of("cudaMalloc"), 3U);
    for (void* const memory : {first, third}) EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(FakeCuda, RegistersWholeRangesOnce) {
    std::vector<std::byte> bytes(8192);
    const cudaStream_t stream = make_stream();
    void* const memory = device_memory(8192);
    EXPECT_EQ(cudaHostRegister(bytes.data(), 4096, cudaHostRegisterReadOnly), cudaSuccess);
    EXPECT_EQ(cudaHostRegister(bytes.data() + 4095, 10, cudaHostRegisterReadOnly),
              cudaErrorHostMemoryAlreadyRegistered);
    EXPECT_EQ(fake_cuda::live().registrations, 1U);
    EXPECT_DEATH((void)cudaMemcpyAsync(memory, bytes.data(), 4097, cudaMemcpyDefault, stream),
                 "page-locked in part");
    EXPECT_EQ(cudaMemcpyAsync(memory, bytes.data(), 4096, cudaMemcpyDefault, stream), cudaSuccess);
    EXPECT_DEATH((void)cudaHostUnregister(bytes.data() + 1), "not the address of a registration");
    EXPECT_EQ(cudaHostUnregister(bytes.data()), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    fake_cuda::reset(settings_with([](Settings& settings) { settings.refuse_pin = true; }));
    EXPECT_EQ(cudaHostRegister(bytes.data(), 4096, 0), cudaErrorNotSupported);
    EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{});
}

/// Host memory that copies leave when they get to it.
struct Pinned {
    explicit Pinned(std::size_t count) {
        void* memory = nullptr;
        EXPECT_EQ(cudaHostAlloc(&memory, count * sizeof(int), cudaHostAllocPortable), cudaSuccess);
        data = static_cast<int*>(memory);
    }
    ~Pinned() { EXPECT_EQ(cudaFreeHost(data), cudaSuccess); }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    int* data = nullptr;
};

TEST_F(FakeCuda, LazyWorkIsDoneWhenSomebodyWaits) {
    fake_cuda::reset(settings_with([](Settings& settings) { settings.lazy = true; }));
    const cudaStream_t writer = make_stream();
    const cudaStream_t reader = make_stream();
    const cudaEvent_t written = make_event();
    auto* const memory = static_cast<int*>(device_memory(sizeof(int)));
    {
        const Pinned from(1);
        const Pinned to(1);
        // What page-locked memory holds when the copy gets to it; pageable memory, at the call.
        *from.data = 1;
        int pageable = 10;
        EXPECT_EQ(cudaMemcpyAsync(memory, from.data, sizeof(int), cudaMemcpyDefault, writer),
                  cudaSuccess);
        *from.data = 2;
        *to.data = 0;
        EXPECT_EQ(cudaMemcpyAsync(to.data, memory, sizeof(int), cudaMemcpyDefault, writer),
                  cudaSuccess);
        EXPECT_EQ(*to.data, 0);
        EXPECT_EQ(cudaStreamSynchronize(writer), cudaSuccess);
        EXPECT_EQ(*to.data, 2);
        EXPECT_EQ(cudaMemcpyAsync(memory, &pageable, sizeof(int), cudaMemcpyDefault, writer),
                  cudaSuccess);
        pageable = 11;
        // Another stream sees it only if it waits for the event.
        EXPECT_EQ(cudaEventRecord(written, writer), cudaSuccess);
        EXPECT_EQ(cudaMemcpyAsync(to.data, memory, sizeof(int), cudaMemcpyDefault, reader),
                  cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(reader), cudaSuccess);
        EXPECT_EQ(*to.data, 2);
        EXPECT_EQ(cudaStreamWaitEvent(reader, written, 0), cudaSuccess);
        EXPECT_EQ(cudaMemcpyAsync(to.data, memory, sizeof(int), cudaMemcpyDefault, reader),
                  cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(reader), cudaSuccess);
        EXPECT_EQ(*to.data, 10);
        // Into pageable memory a copy is over when the call is.
        EXPECT_EQ(cudaMemsetAsync(memory, 0, sizeof(int), writer), cudaSuccess);
        EXPECT_EQ(cudaMemcpyAsync(&pageable, memory, sizeof(int), cudaMemcpyDefault, writer),
                  cudaSuccess);
        EXPECT_EQ(pageable, 0);
        // Each query lets one step pass.
        EXPECT_EQ(cudaMemsetAsync(memory, 1, sizeof(int), writer), cudaSuccess);
        EXPECT_EQ(cudaEventRecord(written, writer), cudaSuccess);
        EXPECT_EQ(cudaEventQuery(written), cudaErrorNotReady);
        EXPECT_EQ(cudaEventQuery(written), cudaSuccess);
        EXPECT_EQ(cudaStreamQuery(writer), cudaSuccess);
        float ms = 0;
        EXPECT_EQ(cudaEventElapsedTime(&ms, written, written), cudaSuccess);
        EXPECT_GT(ms, 0);
    }
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    for (const cudaStream_t stream : {writer, reader})
        EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(written), cudaSuccess);
    EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{});
}

/// A shard and one pass over it, in the fake's memory.
class FakeLaunches : public FakeCuda {
  protected:
    static constexpr std::uint32_t kRows = 1000;
    static constexpr std::uint32_t kDim = 10;
    static constexpr std::uint32_t kStride = 12;
    static constexpr std::uint32_t kUnits = (kRows + kUnitRows - 1) / kUnitRows;
    static constexpr std::uint32_t kQueries = 3;

    void SetUp() override {
        FakeCuda::SetUp();
        stream_ = make_stream();
        std::mt19937_64 random(3);
        make_rows(random);
        make_queries(random);
        upload_model();
        device_queries_ = upload(query_list_);
        queries_.queries = device_queries_;
        queries_.raw = upload(raw_);
        queries_.excluded = upload(excluded_);
        queries_.count = kQueries;
        queries_.max_k_plus_excluded = query_list_[0].k_plus_excluded;
        queries_.all_rows = false;
        work_.maxima = static_cast<float*>(allocate(kQueries * kUnits * sizeof(float)));
        work_.floors = static_cast<double*>(allocate(kQueries * sizeof(double)));
        work_.counters = upload(std::vector<std::uint32_t>(kQueries * kCounters, 0));
        work_.found = static_cast<Found*>(allocate(kQueries * kFoundCapacity * sizeof(Found)));
        work_.scores = static_cast<double*>(allocate(kRows * sizeof(double)));
        work_.divisors = static_cast<double*>(allocate(kRows * sizeof(double)));
        work_.answers =
            static_cast<DeviceAnswer*>(allocate_pinned(kQueries * sizeof(DeviceAnswer)));
        work_.hits = static_cast<Found*>(allocate_pinned(kQueries * kMaxHits * sizeof(Found)));
    }

    void make_rows(std::mt19937_64& random) {
        std::normal_distribution<float> component;
        rows_.resize(kRows * kDim);
        for (float& value : rows_) value = component(random);
        for (std::uint32_t row = 0; row < kRows; ++row) {
            // Every hundredth row is too small for the bound.
            for (std::uint32_t i = 0; i < kDim && row % 100 == 50; ++i)
                rows_[row * kDim + i] *= 1e-30F;
            norms_.push_back(kernels::canonical_norm(&rows_[row * kDim], kDim));
            ranks_.push_back(kRows - 1 - row);
            if (!kernels::bound_covers(norms_.back())) uncovered_.push_back(row);
        }
        ASSERT_EQ(uncovered_.size(), 10U);
    }

    void make_queries(std::mt19937_64& random) {
        std::normal_distribution<float> component;
        raw_.resize(kQueries * kStride);
        for (std::uint32_t q = 0; q < kQueries; ++q) {
            for (std::uint32_t i = 0; i < kDim; ++i) raw_[q * kStride + i] = component(random);
            const double norm = kernels::canonical_norm(&raw_[q * kStride], kDim);
            DeviceQuery query;
            query.norm = norm;
            query.min_score = -std::numeric_limits<double>::infinity();
            query.k_plus_excluded = 8;
            query.k = 5;
            query.rank_below = ~std::uint32_t{0};
            query.last = kRows;
            query.excluded_count = 3;
            query_list_.push_back(query);
        }
        excluded_ = {100, 500, 900};
    }

    void upload_model() {
        const auto* const packed = upload(rows_);
        padded_ = static_cast<float*>(allocate(kRows * kStride * sizeof(float)));
        model_ = {};
        model_.vectors = padded_;
        model_.norms = upload(norms_);
        model_.ranks = upload(ranks_);
        model_.uncovered = upload(uncovered_);
        model_.rows = kRows;
        model_.first_row = 7000;
        model_.dim = kDim;
        model_.stride = kStride;
        model_.units = kUnits;
        model_.uncovered_count = static_cast<std::uint32_t>(uncovered_.size());
        ASSERT_EQ(launch_pad_rows(packed, kRows, kDim, kStride, padded_, stream_), cudaSuccess);
    }

    void TearDown() override {
        for (void* const memory : memory_) EXPECT_EQ(cudaFree(memory), cudaSuccess);
        for (void* const memory : pinned_) EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
        EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{});
    }

    void* allocate(std::size_t bytes) { return memory_.emplace_back(device_memory(bytes)); }
    void* allocate_pinned(std::size_t bytes) {
        void* memory = nullptr;
        EXPECT_EQ(cudaHostAlloc(&memory, bytes, 0), cudaSuccess);
        return pinned_.emplace_back(memory);
    }
    template <class T>
    T* upload(const std::vector<T>& values) {
        auto* const memory = static_cast<T*>(allocate(values.size() * sizeof(T)));
        EXPECT_EQ(cudaMemcpyAsync(memory, values.data(), values.size() * sizeof(T),
                                  cudaMemcpyDefault, stream_),
                  cudaSuccess);
        return memory;
    }
    template <class T>
    std::vector<T> download(const T* memory, std::size_t count) {
        std::vector<T> values(count);
        EXPECT_EQ(
            cudaMemcpyAsync(values.data(), memory, count * sizeof(T), cudaMemcpyDefault, stream_),
            cudaSuccess);
        return values;
    }
    void send_queries() {
        ASSERT_EQ(
            cudaMemcpyAsync(device_queries_, query_list_.data(),
                            query_list_.size() * sizeof(DeviceQuery), cudaMemcpyDefault, stream_),
            cudaSuccess);
    }

    double score(std::uint32_t q, std::uint32_t row) const {
        return kernels::canonical_score(&raw_[q * kStride], query_list_[q].norm, &rows_[row * kDim],
                                        norms_[row], kDim);
    }
    bool is_excluded(std::uint32_t row) const {
        return std::find(excluded_.begin(), excluded_.end(), row) != excluded_.end();
    }
    /// Eligible rows of a query, best first.
    std::vector<Found> order(std::uint32_t q) const {
        const DeviceQuery& query = query_list_[q];
        std::vector<Found> rows;
        for (std::uint32_t row = query.first; row < query.last; ++row) {
            if (is_excluded(row) || ranks_[row] >= query.rank_below ||
                score(q, row) < query.min_score)
                continue;
            rows.push_back({score(q, row), row, 0});
        }
        std::sort(rows.begin(), rows.end(),
                  [](const Found& a, const Found& b) { return a.score > b.score; });
        return rows;
    }
    /// `at`: where the launch had the query.
    void expect_hits(std::uint32_t q, std::uint32_t at = 0) const {
        const auto wanted = order(q);
        const DeviceAnswer& answer = work_.answers[at];
        ASSERT_EQ(answer.hits, std::min<std::size_t>(query_list_[q].k, wanted.size()));
        ASSERT_GE(answer.found, answer.hits);
        ASSERT_GE(answer.rescored, answer.found);
        for (std::uint32_t i = 0; i < answer.hits; ++i) {
            const Found& hit = work_.hits[at * kMaxHits + i];
            EXPECT_EQ(hit.row, wanted[i].row) << "query " << q << ", place " << i;
            EXPECT_EQ(hit.score, wanted[i].score);
        }
        const auto above = std::count_if(wanted.begin(), wanted.end(), [&](const Found& found) {
            return found.score >= answer.floor;
        });
        EXPECT_LE(above, answer.rescored);
    }
    /// A pass of the first `count` queries, each by its own vector.
    ScorePass pass_of(std::uint32_t count, ScoreResult result = ScoreResult::maxima) const {
        ScorePass pass;
        for (std::uint32_t q = 0; q < count; ++q) {
            pass.queries[q].begin = q;
            pass.queries[q].positives_end = pass.queries[q].end = q + 1;
        }
        pass.count = count;
        pass.last_unit = kUnits;
        pass.result = result;
        return pass;
    }
    cudaError_t launch(const ScorePass& pass) {
        return launch_score(model_, queries_, pass, work_, kShape, stream_);
    }

    cudaStream_t stream_ = nullptr;
    std::vector<void*> memory_;
    std::vector<void*> pinned_;
    std::vector<float> rows_;
    std::vector<float> raw_;
    std::vector<double> norms_;
    std::vector<std::uint32_t> ranks_;
    std::vector<std::uint32_t> uncovered_;
    std::vector<std::uint32_t> excluded_;
    std::vector<DeviceQuery> query_list_;
    float* padded_ = nullptr;
    DeviceQuery* device_queries_ = nullptr;
    DeviceModel model_;
    DeviceQueries queries_;
    Workspace work_;
};

TEST_F(FakeLaunches, PreparesAShard) {
    const auto padded = download(padded_, kRows * kStride);
    for (std::uint32_t row = 0; row < kRows; ++row) {
        for (std::uint32_t i = 0; i < kStride; ++i)
            ASSERT_EQ(padded[row * kStride + i], i < kDim ? rows_[row * kDim + i] : 0.0F);
    }
}

TEST_F(FakeLaunches, TilesHoldEveryCoveredRowInOrderOfItsProjection) {
    constexpr std::uint32_t kUncovered = 10;
    constexpr std::uint32_t kPlaces = kRows - kUncovered;
    constexpr std::uint32_t kTiles = code_tiles(kPlaces);
    constexpr std::uint32_t kWidth = code_width(kDim);
    DeviceCodeTiles& tiles = model_.code_tiles;
    tiles = {
        static_cast<std::int8_t*>(allocate(std::size_t{kTiles} * kCodeTileRows * kWidth)),
        static_cast<kernels::cuda::Int8Range*>(allocate(kTiles * sizeof(kernels::cuda::Int8Range))),
        static_cast<kernels::cuda::Int8Bounds*>(
            allocate(kPlaces * sizeof(kernels::cuda::Int8Bounds))),
        static_cast<std::uint32_t*>(allocate(kPlaces * sizeof(std::uint32_t))),
        static_cast<std::uint32_t*>(allocate(kRows * sizeof(std::uint32_t))),
        kPlaces,
        kTiles,
        kWidth};
    std::size_t scratch_bytes = 0;
    ASSERT_EQ(code_tiles_scratch_bytes(kRows, scratch_bytes), cudaSuccess);
    auto* const scratch = static_cast<std::byte*>(allocate(scratch_bytes));
    ASSERT_EQ(launch_build_code_tiles(model_, scratch, scratch_bytes, stream_), cudaSuccess);
    const auto rows = download(tiles.rows, kPlaces);
    const auto bounds = download(tiles.bounds, kPlaces);
    const auto ranges = download(tiles.ranges, kTiles);
    const auto codes = download(tiles.codes, std::size_t{kTiles} * kCodeTileRows * kWidth);
    std::vector<std::uint32_t> seen(rows);
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
    const auto places = download(tiles.places_of, kRows);
    for (std::uint32_t row = 50; row < kRows; row += 100) EXPECT_EQ(places[row], kNoPlace);
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
        const std::uint32_t row = rows[place];
        EXPECT_EQ(places[row], place);
        ASSERT_NE(row % 100, 50U) << "an uncovered row";
        EXPECT_GE(bounds[place].projection, bounds[place > 0 ? place - 1 : 0].projection);
        const kernels::cuda::Int8Range& range = ranges[place / kCodeTileRows];
        EXPECT_LE(range.min_projection, bounds[place].projection);
        EXPECT_GE(range.max_projection, bounds[place].projection);
        EXPECT_GE(range.max_residual, bounds[place].residual);
        int largest = 0;
        for (std::uint32_t i = 0; i < kWidth; ++i) {
            const int code = codes[std::size_t{place / kCodeTileRows} * kCodeTileRows * kWidth +
                                   code_offset(kCodeTileRows, place % kCodeTileRows, i)];
            largest = std::max(largest, std::abs(code));
            if (i >= kDim) {
                EXPECT_EQ(code, 0);
            } else if (std::fabs(rows_[row * kDim + i]) > 0.1F) {
                EXPECT_EQ(code > 0, rows_[row * kDim + i] > 0) << row << " " << i;
            }
        }
        EXPECT_EQ(largest, 127);
    }
    EXPECT_DEATH((void)launch_build_code_tiles(model_, scratch, scratch_bytes - 1, stream_),
                 "too little scratch");
    --tiles.places;
    EXPECT_DEATH((void)launch_build_code_tiles(model_, scratch, scratch_bytes, stream_),
                 "not every covered row");
}

TEST_F(FakeLaunches, SeveralQueriesShareAScorePass) {
    query_list_[1].rank_below = 400;
    query_list_[2].first = 40;
    query_list_[2].last = 700;
    query_list_[2].min_score = 0.3;
    queries_.any_filter = true;
    send_queries();
    ASSERT_EQ(launch(pass_of(kQueries)), cudaSuccess);
    for (std::uint32_t q = 0; q < kQueries; ++q) {
        expect_hits(q, q);
        // Of few units the rows are more than candidates.
        EXPECT_LT(work_.answers[q].rescored, kRows / 2);
    }
    // More than there are units: no floor, and every row is looked at.
    queries_.count = 1;
    query_list_[0].k = 100;
    query_list_[0].k_plus_excluded = queries_.max_k_plus_excluded = 103;
    send_queries();
    ASSERT_EQ(launch(pass_of(1)), cudaSuccess);
    expect_hits(0);
    EXPECT_EQ(work_.answers[0].floor, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(work_.answers[0].rescored, kRows);
}

/// A plane, and vectors in page-locked memory of the host.
class FakeLaunchesOnTheHost : public FakeLaunches {
  protected:
    void SetUp() override {
        FakeLaunches::SetUp();
        const kernels::planes::PlaneShape shape{kRows, kDim};
        // No code tells anything: whatever the bytes, a residual that is all of the length keeps
        // every bound at 1.
        std::vector<std::uint8_t> plane(shape.bytes() + 256, 0x55);
        for (std::uint32_t row = 0; row < kRows; ++row) {
            const std::uint16_t bounds[2] = {
                0, static_cast<std::uint16_t>(row % 100 == 50 ? 0 : 65535)};
            for (std::size_t i = 0; i < 2; ++i) {
                std::memcpy(&plane[row / 16 * shape.group_bytes() + shape.steps() * 64 +
                                   (16 * i + row % 16) * 2],
                            &bounds[i], 2);
            }
        }
        model_.plane = {upload(plane), static_cast<std::uint32_t>(shape.groups()),
                        static_cast<std::uint32_t>(shape.steps())};
        ASSERT_EQ(cudaHostRegister(rows_.data(), rows_.size() * sizeof(float), 0), cudaSuccess);
        on_device_ = model_;
        model_.vectors = rows_.data();
        model_.vectors_on_host = true;
        model_.stride = kDim;
        std::vector<float> packed(raw_.begin(), raw_.begin() + kDim);
        queries_.count = 1;
        queries_.raw = upload(packed);
        queries_.digits = upload(std::vector<std::int8_t>(shape.steps() * 16, 0));
        host_ = query_list_[0];
        host_.upper.per_unit = 1;
        host_.excluded_count = 1000;  // too many for a parameter
        queries_.host.queries = &host_;
        query_list_[0].upper.per_unit = 1;
        send_queries();
        work_.candidate_scores = static_cast<float*>(allocate(kMaxCandidates * sizeof(float)));
    }

    void TearDown() override {
        EXPECT_EQ(cudaHostUnregister(rows_.data()), cudaSuccess);
        FakeLaunches::TearDown();
    }

    DeviceModel on_device_;
    DeviceQuery host_;
};

TEST_F(FakeLaunchesOnTheHost, AnswersAreTheSame) {
    ASSERT_TRUE(plane_serves(model_, query_list_[0].k_plus_excluded, kShape));
    EXPECT_FALSE(plane_serves(model_, kRows, kShape));
    ASSERT_EQ(launch_plane_query(model_, queries_, work_, kShape, stream_), cudaSuccess);
    expect_hits(0);
    EXPECT_GT(work_.answers[0].floor, -1.0);
}

TEST_F(FakeLaunchesOnTheHost, BoundsThatBlocksDoNotHoldNeedMemory) {
    DeviceShape small = kShape;
    small.shared_bytes = kPlaneStaticShared;
    const PlaneGrid grid(kUnits, model_.plane.steps, small);
    EXPECT_GE(grid.uppers(), kUnits * kUnitRows);
    EXPECT_DEATH((void)launch_plane_query(model_, queries_, work_, small, stream_), "uppers");
    work_.uppers = static_cast<float*>(allocate(grid.uppers() * sizeof(float)));
    ASSERT_EQ(launch_plane_query(model_, queries_, work_, small, stream_), cudaSuccess);
    expect_hits(0);
}

TEST_F(FakeLaunchesOnTheHost, EndsWhoeverContradictsTheHeader) {
    EXPECT_DEATH((void)launch_build_int8_codes(model_, stream_), "int8 rows is not page-locked");
    const auto scan = [&](const DeviceModel& model) {
        return launch_plane_query(model, queries_, work_, kShape, stream_);
    };
    DeviceModel model = model_;
    model.stride = kStride;
    EXPECT_DEATH((void)scan(model), "with padding");
    model = model_;
    model.vectors = raw_.data();
    EXPECT_DEATH((void)scan(model), "page-locked");
    model = model_;
    model.plane.steps += 1;
    EXPECT_DEATH((void)scan(model), "a plane of another shape");
    model = model_;
    model.plane.bytes = nullptr;
    EXPECT_DEATH((void)scan(model), "plane_serves denies");
    EXPECT_DEATH((void)launch_plane_pass(on_device_, queries_, work_, kShape, stream_),
                 "than plane_pass_capacity");
    DeviceShape integers = kShape;
    integers.integer_products = true;
    queries_.max_k_plus_excluded = kRows;
    EXPECT_DEATH((void)launch_plane_pass(on_device_, queries_, work_, integers, stream_),
                 "plane_pass_serves denies");
    queries_.max_k_plus_excluded = query_list_[0].k_plus_excluded;
    query_list_[0].upper.centre = 15;
    send_queries();
    EXPECT_DEATH((void)scan(model_), "facts of other digits");
}

/// One 3CosMul query of six vectors: in one launch, and in two, the second of which continues.
TEST_F(FakeLaunches, ScoresSelectsAndCountsExactly) {
    const std::vector<std::uint32_t> vectors = {0, 1, 0, 1, 0, 1};  // two positives, four negatives
    std::vector<float> raw;
    std::vector<DeviceQuery> list;
    for (const std::uint32_t v : vectors) {
        raw.insert(raw.end(), raw_.begin() + v * kStride, raw_.begin() + (v + 1) * kStride);
        list.push_back(query_list_[v]);
    }
    list[0].first = 33;
    list[0].min_score = 1;
    queries_.queries = upload(list);
    queries_.raw = upload(raw);
    queries_.count = 6;
    ScorePass pass = pass_of(1, ScoreResult::scores);
    pass.queries[0] = {.begin = 0, .positives_end = 2, .end = 6, .is_product = true, .target = {}};
    ASSERT_EQ(launch(pass), cudaSuccess);
    const auto scores = download(work_.scores, kRows);
    std::vector<double> eligible;
    for (std::uint32_t row = 0; row < kRows; ++row) {
        const double above =
            1.0 * kernels::cosmul_part(score(0, row)) * kernels::cosmul_part(score(1, row));
        const double below =
            above * kernels::cosmul_part(score(0, row)) * kernels::cosmul_part(score(1, row));
        const double value = kernels::cosmul_score(above, below);
        if (row < 33 || value < 1) {
            ASSERT_TRUE(std::isnan(scores[row])) << row;
        } else {
            ASSERT_EQ(scores[row], value) << row;
            if (!is_excluded(row)) eligible.push_back(value);
        }
    }

    ScorePass part = pass;
    DeviceQueries all = queries_;
    queries_.count = part.queries[0].end = 3;
    part.goes_on = true;
    ASSERT_EQ(launch(part), cudaSuccess);
    list[3].first = list[0].first;
    list[3].min_score = list[0].min_score;
    queries_.queries = upload(list) + 3;
    queries_.raw += 3 * kStride;
    part.queries[0].positives_end = 0;
    part.continues = true;
    part.goes_on = false;
    ASSERT_EQ(launch(part), cudaSuccess);
    const auto in_parts = download(work_.scores, kRows);
    EXPECT_EQ(std::memcmp(scores.data(), in_parts.data(), kRows * sizeof(double)), 0);

    queries_ = all;
    pass.result = ScoreResult::maxima;
    ASSERT_EQ(launch(pass), cudaSuccess);
    std::sort(eligible.rbegin(), eligible.rend());
    ASSERT_EQ(work_.answers[0].hits, list[0].k);
    for (std::uint32_t i = 0; i < list[0].k; ++i) EXPECT_EQ(work_.hits[i].score, eligible[i]);

    pass.result = ScoreResult::counts;
    pass.queries[0].target = {eligible[7], model_.first_row, 0};
    ASSERT_EQ(launch(pass), cudaSuccess);
    EXPECT_EQ(work_.answers[0].found, 7U);
}

TEST_F(FakeLaunches, CountsBeyondTheCapacityAndWritesUpToIt) {
    // All rows score, as nothing is kept back; the shard is made larger than the list by
    // pretending.
    constexpr std::uint32_t kMany = 10000;
    constexpr std::uint32_t kManyUnits = (kMany + kUnitRows - 1) / kUnitRows;
    const std::vector<float> vectors(kMany * kStride, 1.0F);
    const std::vector<double> norms(kMany, 3.0);
    const std::vector<std::uint32_t> ranks(kMany, 0);
    model_.vectors = upload(vectors);
    model_.norms = upload(norms);
    model_.ranks = upload(ranks);
    model_.uncovered = nullptr;
    model_.uncovered_count = 0;
    model_.rows = kMany;
    model_.first_row = 0;
    model_.units = kManyUnits;
    work_.maxima = static_cast<float*>(allocate(kManyUnits * sizeof(float)));
    work_.scores = work_.divisors = static_cast<double*>(allocate(kMany * sizeof(double)));
    queries_.count = 1;
    query_list_[0].last = kMany;
    send_queries();
    work_.hits[0].row = 4711;
    ScorePass pass = pass_of(1);
    pass.last_unit = kManyUnits;
    ASSERT_EQ(launch(pass), cudaSuccess);
    EXPECT_EQ(work_.answers[0].found, kMany - 3);
    EXPECT_EQ(work_.answers[0].hits, 0U);
    EXPECT_EQ(work_.hits[0].row, 4711U);
}

TEST_F(FakeLaunches, EndsWhoeverContradictsTheHeader) {
    const auto score_with = [&](const DeviceModel& model, const ScorePass& pass,
                                const Workspace& work, const DeviceShape& shape = kShape) {
        return launch_score(model, queries_, pass, work, shape, stream_);
    };
    const ScorePass three = pass_of(kQueries);
    EXPECT_DEATH((void)launch(pass_of(1)), "vectors of no query");
    EXPECT_DEATH((void)launch(pass_of(0)), "no query");
    ScorePass wrong = three;
    wrong.queries[1].begin = 2;
    EXPECT_DEATH((void)launch(wrong), "no query's own");
    wrong = three;
    wrong.count = 2;
    wrong.queries[1].end = 3;
    EXPECT_DEATH((void)launch(wrong), "more than one vector");
    wrong = three;
    wrong.last_unit = kUnits + 1;
    EXPECT_DEATH((void)launch(wrong), "units that the shard");
    wrong = three;
    wrong.result = ScoreResult::scores;
    EXPECT_DEATH((void)launch(wrong), "scores of several queries");
    wrong = three;
    wrong.goes_on = true;
    EXPECT_DEATH((void)launch(wrong), "a part of a query's vectors");
    EXPECT_EQ(launch(three), cudaSuccess);
    EXPECT_DEATH((void)score_with(model_, three, work_, {0, 1, 1}), "without processors");
    DeviceModel model = model_;
    model.rows = kRows + 100;
    EXPECT_DEATH((void)score_with(model, three, work_), "bytes from byte 0 of an allocation");
    model = model_;
    model.units = kUnits + 1;
    EXPECT_DEATH((void)score_with(model, three, work_), "units is not");
    model = model_;
    model.stride = 8;
    EXPECT_DEATH((void)score_with(model, three, work_), "stride is not");
    model = model_;
    model.norms = norms_.data();
    EXPECT_DEATH((void)score_with(model, three, work_), "norms is not device memory");
    Workspace work = work_;
    work.answers = nullptr;
    EXPECT_DEATH((void)score_with(model_, three, work), "answers is not page-locked");
    work = work_;
    work.counters =
        static_cast<std::uint32_t*>(allocate(kCounters * kQueries * sizeof(std::uint32_t)));
    EXPECT_DEATH((void)score_with(model_, three, work), "counters are not 0");
    query_list_[0].rank_below = 5;
    send_queries();
    EXPECT_DEATH((void)launch(three), "any_filter is false");
    query_list_[0].rank_below = ~std::uint32_t{0};
    query_list_[0].excluded_count = 4;
    send_queries();
    EXPECT_DEATH((void)launch(three), "beyond their allocation");
    query_list_[0].k_plus_excluded = 10;
    send_queries();
    EXPECT_DEATH((void)launch(three), "max_k_plus_excluded");
}

}  // namespace
}  // namespace gloved::tests
