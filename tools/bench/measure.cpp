#include "tools/bench/measure.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "common/elapsed.hpp"
#include "common/quoting.hpp"
#include "common/table_text.hpp"

namespace gloved::bench {
namespace {

/// Bytes that a thread reads at a time.
constexpr std::size_t kReadGrain = 1 << 20;

// CBLAS's constants for matrix layouts.
constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

// Loads of 16 bytes are enough: eight of them in flight saturate the memory of a core. Wider ones,
// with target attributes, were not faster.
using Words = std::uint64_t __attribute__((vector_size(16)));
constexpr std::size_t kAccumulators = 8;

/// Exclusive or of the 8-byte words of `bytes`, without a tail of less than 128 bytes.
std::uint64_t fold(std::span<const std::byte> bytes) {
    Words sums[kAccumulators] = {};
    for (std::size_t i = 0; i + sizeof sums <= bytes.size(); i += sizeof sums) {
#pragma GCC unroll 8
        for (std::size_t a = 0; a < kAccumulators; ++a) {
            Words words;
            std::memcpy(&words, bytes.data() + i + a * sizeof words, sizeof words);
            sums[a] ^= words;
        }
    }
    for (std::size_t a = 1; a < kAccumulators; ++a) sums[0] ^= sums[a];
    return sums[0][0] ^ sums[0][1];
}

std::vector<double> sorted(std::vector<double> values) {
    std::ranges::sort(values);
    return values;
}

/// Number of characters of UTF-8 text: all bytes but continuation bytes.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

double median(std::span<const double> values) {
    assert(!values.empty());
    const auto in_order = sorted({values.begin(), values.end()});
    return (in_order[(in_order.size() - 1) / 2] + in_order[in_order.size() / 2]) / 2;
}

double percentile(std::span<const double> values, double share) {
    assert(!values.empty() && share > 0 && share <= 1);
    const auto in_order = sorted({values.begin(), values.end()});
    return in_order[static_cast<std::size_t>(
                        std::ceil(share * static_cast<double>(values.size()))) -
                    1];
}

double mean(std::span<const double> values) {
    assert(!values.empty());
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> standard_error(std::span<const double> values) {
    if (values.size() < 2) return std::nullopt;
    const double middle = mean(values);
    double squares = 0;
    for (const double value : values) squares += (value - middle) * (value - middle);
    const auto count = static_cast<double>(values.size());
    return std::sqrt(squares / (count - 1) / count);
}

double Series::median() const { return bench::median(ms); }

double Series::min() const { return *std::ranges::min_element(ms); }

double Series::percentile(double share) const { return bench::percentile(ms, share); }

double Series::median_wait_ms() const {
    assert(device_ms.size() == ms.size());
    std::vector<double> waits(ms.size());
    std::ranges::transform(ms, device_ms, waits.begin(), std::minus<>());
    return bench::median(waits);
}

double time_ms(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return ms_since(begin);
}

Result<std::vector<Series>> measure(std::span<const Contender> contenders, std::size_t rounds,
                                    const std::function<bool()>& interrupted) {
    std::vector<Series> all;
    for (const Contender& contender : contenders)
        all.push_back({contender.what, contender.queries});
    for (std::size_t round = 0; round <= rounds; ++round) {
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            const std::size_t c = (i + round) % contenders.size();
            if (interrupted()) return Error{ErrorCode::interrupted, "interrupted"};
            if (contenders[c].prepare) contenders[c].prepare(round);
            Status done;
            const double ms = time_ms([&] { done = contenders[c].run(); });
            if (!done) return done.error();
            if (contenders[c].finish) contenders[c].finish();
            if (round == 0) continue;
            all[c].ms.push_back(ms);
            if (contenders[c].device_ms) all[c].device_ms.push_back(contenders[c].device_ms());
        }
    }
    return all;
}

void read_all(kernels::ThreadPool& pool, std::span<const std::byte> bytes) {
    std::atomic<std::uint64_t> folded = 0;
    pool.for_ranges(bytes.size(), kReadGrain, [&](std::size_t begin, std::size_t end) {
        folded.fetch_xor(fold(bytes.subspan(begin, end - begin)), std::memory_order_relaxed);
    });
    // Uses the result, or the compiler would remove the reads.
    volatile std::uint64_t wanted = folded.load();
    (void)wanted;
}

Result<OpenBlas> OpenBlas::load(unsigned threads) {
    // By default idle threads of OpenBLAS spin for 2^26 cycles, which would slow the next
    // contender.
    ::setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
    void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return Error{ErrorCode::unavailable, ::dlerror()};
    // Never closed, since its threads run its code.
    const auto find = [&](const char* name) { return ::dlsym(library, name); };
    const auto set_threads = reinterpret_cast<void (*)(int)>(find("openblas_set_num_threads"));
    const auto get_config = reinterpret_cast<char* (*)()>(find("openblas_get_config"));
    OpenBlas blas;
    blas.sgemv_ = reinterpret_cast<Sgemv>(find("cblas_sgemv"));
    blas.sgemm_ = reinterpret_cast<Sgemm>(find("cblas_sgemm"));
    if (blas.sgemv_ == nullptr || blas.sgemm_ == nullptr || set_threads == nullptr) {
        return Error{
            ErrorCode::unavailable,
            "libopenblas.so.0 has no cblas_sgemv, cblas_sgemm or openblas_set_num_threads"};
    }
    set_threads(static_cast<int>(threads));
    blas.description_ =
        fmt::format("{}, {} thread{}", get_config == nullptr ? "OpenBLAS" : get_config(), threads,
                    threads == 1 ? "" : "s");
    return blas;
}

void OpenBlas::sgemv(const float* matrix, std::size_t rows, std::size_t dim, const float* query,
                     float* out) const {
    sgemv_(kRowMajor, kNoTranspose, static_cast<int>(rows), static_cast<int>(dim), 1.0F, matrix,
           static_cast<int>(dim), query, 1, 0.0F, out, 1);
}

void OpenBlas::sgemm(const float* matrix, std::size_t rows, std::size_t dim, const float* queries,
                     std::size_t count, float* out) const {
    sgemm_(kRowMajor, kNoTranspose, kTranspose, static_cast<int>(count), static_cast<int>(rows),
           static_cast<int>(dim), 1.0F, queries, static_cast<int>(dim), matrix,
           static_cast<int>(dim), 0.0F, out, static_cast<int>(rows));
}

void Table::add(std::vector<std::string> cells) {
    assert(cells.size() == rows_.front().size());
    // Names of engines and files must not end a line.
    for (std::string& cell : cells) cell = without_control_bytes(cell);
    rows_.push_back(std::move(cells));
}

std::string Table::to_string(TableFormat format) const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
    }
    std::string text;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            if (format == TableFormat::csv) {
                if (c > 0) line += kCsv.separator;
                append_cell(line, row[c], kCsv);
                continue;
            }
            const std::size_t padding = widths[c] - width(row[c]);
            if (c > 0) line.append(padding + 2, ' ');
            line += row[c];
            if (c == 0) line.append(padding, ' ');
        }
        if (format == TableFormat::text) line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

void Table::print(std::FILE* to, TableFormat format) const {
    fmt::print(to, "{}", to_string(format));
}

std::string figure(double value) {
    const double size = std::abs(value);
    return fmt::format("{:.{}f}", value,
                       size >= 999.95   ? 0
                       : size >= 99.995 ? 1
                       : size >= 9.9995 ? 2
                                        : 3);
}

void print_note(TableFormat format, std::string_view text) {
    fmt::print("{}{}\n", format == TableFormat::csv ? "# " : "", without_control_bytes(text));
}

}  // namespace gloved::bench
