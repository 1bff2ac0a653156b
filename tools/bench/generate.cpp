#include "tools/bench/generate.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/files.hpp"
#include "common/format/publish.hpp"
#include "common/format/writer.hpp"
#include "common/program_version.hpp"
#include "kernels/canonical.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::bench {
namespace {

/// Bytes in memory at a time.
constexpr std::size_t kChunkBytes = 16 << 20;
constexpr std::size_t kTopics = 1024;

/// SplitMix64 (Steele, Lea and Flood 2014, «Fast splittable pseudorandom number generators»): any
/// 64-bit state starts a stream.
class SplitMix {
  public:
    explicit SplitMix(std::uint64_t state) : state_(state) {}
    std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15); }
    /// In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }

  private:
    std::uint64_t state_;
};

/// The random stream for a purpose and an index.
SplitMix stream(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index) {
    return SplitMix(SplitMix::mix(SplitMix::mix(seed + purpose * 0x9E3779B97F4A7C15) + index));
}
enum Purpose : std::uint64_t {
    kKeysStream = 1,
    kRanksStream,
    kCommonStream,
    kTopicStream,
    kRowStream
};

/// Adds `weight` times components of mean 0 and variance 1. The sum of four uniform numbers
/// (Irwin–Hall) is close enough to normal for a benchmark and needs one 64-bit number per
/// component.
void add_noise(SplitMix& random, float weight, std::span<float> to) {
    constexpr float kMean = 2.0F * 0xFFFF;
    const float scale = weight / (0xFFFF * std::sqrt(4.0F / 12.0F));
    for (float& value : to) {
        const std::uint64_t bits = random.next();
        const auto sum = static_cast<std::int32_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) +
                                                   (bits >> 32 & 0xFFFF) + (bits >> 48));
        value += (static_cast<float>(sum) - kMean) * scale;
    }
}

/// A permutation of [0, size) with random access: a Feistel network over the next power of four,
/// repeated until the result is in range.
class Permutation {
  public:
    Permutation(std::uint64_t size, std::uint64_t seed)
        : size_(size),
          seed_(seed),
          half_bits_((static_cast<std::uint64_t>(std::bit_width(size - 1)) + 1) / 2),
          mask_((std::uint64_t{1} << half_bits_) - 1) {}

    std::uint32_t operator()(std::uint64_t at) const {
        do {
            std::uint64_t left = at >> half_bits_;
            std::uint64_t right = at & mask_;
            for (std::uint64_t round = 0; round < 4; ++round) {
                left ^= SplitMix::mix(seed_ + (round << 32) + right) & mask_;
                std::swap(left, right);
            }
            at = left << half_bits_ | right;
        } while (at >= size_);
        return static_cast<std::uint32_t>(at);
    }

  private:
    std::uint64_t size_;
    std::uint64_t seed_;
    std::uint64_t half_bits_;
    std::uint64_t mask_;
};

/// The letters of keys in byte order, with their weights.
struct Letter {
    std::string_view bytes;
    double weight;
};
constexpr std::array<Letter, 47> kLetters = {{
    {"-", 1},   {".", 0.5}, {"0", 1},   {"1", 1.5}, {"2", 1},   {"5", 0.5}, {"9", 0.5}, {"A", 1},
    {"B", 1},   {"C", 1},   {"D", 1},   {"E", 0.5}, {"K", 0.5}, {"M", 1},   {"P", 1},   {"R", 0.5},
    {"S", 1.5}, {"T", 1},   {"_", 0.2}, {"a", 8},   {"b", 2},   {"c", 3},   {"d", 4},   {"e", 11},
    {"f", 2},   {"g", 2},   {"h", 4},   {"i", 7},   {"j", 0.5}, {"k", 1.5}, {"l", 4},   {"m", 3},
    {"n", 7},   {"o", 7},   {"p", 2},   {"q", 0.2}, {"r", 6},   {"s", 6},   {"t", 8},   {"u", 3},
    {"v", 1},   {"w", 2},   {"x", 0.3}, {"y", 2},   {"z", 0.5}, {"é", 0.4}, {"ü", 0.3},
}};

/// Makes distinct keys in byte order by a walk over a tree of prefixes, which divides the number of
/// keys among the letters. So nothing is sorted or kept in memory.
class KeyTree {
  public:
    KeyTree(format::ModelWriter& writer, std::uint64_t seed,
            const std::function<bool()>& interrupted)
        : writer_(writer), random_(stream(seed, kKeysStream, 0)), interrupted_(interrupted) {
        for (const Letter& letter : kLetters) total_weight_ += letter.weight;
    }

    /// Appends `count` keys with the current prefix.
    Status append(std::uint64_t count) {
        if (count == 1) return append_with_ending();
        if (!prefix_.empty()) {
            if (Status appended = writer_.append_key(prefix_); !appended) return appended;
            --count;
        }
        if (count > 10'000 && interrupted_ && interrupted_())
            return Error{ErrorCode::interrupted, "interrupted"};
        // Rounded sums from a random start give every letter its share.
        const double start = random_.uniform();
        double weight = 0;
        std::uint64_t given = 0;
        for (const Letter& letter : kLetters) {
            weight += letter.weight;
            const bool last = &letter == &kLetters.back();
            const auto until =
                last ? count
                     : std::min(count,
                                static_cast<std::uint64_t>(start + static_cast<double>(count) *
                                                                       weight / total_weight_));
            if (until > given) {
                prefix_ += letter.bytes;
                if (Status appended = append(until - given); !appended) return appended;
                prefix_.resize(prefix_.size() - letter.bytes.size());
            }
            given = std::max(given, until);
        }
        return {};
    }

  private:
    /// Ends a key whose prefix no other key has, so that any ending keeps the order.
    Status append_with_ending() {
        const std::size_t length = prefix_.size();
        while (prefix_.empty() || random_.uniform() < 0.72)
            prefix_ += static_cast<char>('a' + random_.next() % 26);
        Status appended = writer_.append_key(prefix_);
        prefix_.resize(length);
        return appended;
    }

    format::ModelWriter& writer_;
    SplitMix random_;
    const std::function<bool()>& interrupted_;
    double total_weight_ = 0;
    std::string prefix_;
};

/// Makes rows independently of each other.
class RowMaker {
  public:
    explicit RowMaker(const GenerateOptions& options)
        : seed_(options.seed),
          log_rows_(std::log1p(static_cast<double>(options.rows))),
          rank_of_(options.rows, SplitMix::mix(options.seed + kRanksStream)),
          common_(options.dim),
          topics_(std::size_t{kTopics} * options.dim) {
        SplitMix random = stream(seed_, kCommonStream, 0);
        add_noise(random, 1.0F, common_);
        random = stream(seed_, kTopicStream, 0);
        add_noise(random, 1.0F, topics_);
    }

    std::uint32_t rank(std::uint64_t row) const { return rank_of_(row); }

    void fill(std::uint64_t row, std::span<float> out) const {
        SplitMix random = stream(seed_, kRowStream, row);
        const double frequency = 1.0 - std::log1p(static_cast<double>(rank(row))) /
                                           log_rows_;  // 1 for the most frequent
        const double scale = (3.0 + 5.0 * random.uniform() + 2.0 * std::min(1.0, 2 * frequency)) /
                             std::sqrt(static_cast<double>(out.size()));
        // The squares of the three weights add up to 1.
        const double common = 0.3 + 0.4 * frequency;
        const double rest = std::sqrt(1.0 - common * common);
        const double topic = rest * 0.9 * random.uniform();
        const double own = std::sqrt(rest * rest - topic * topic);
        const float* of_topic = topics_.data() + random.next() % kTopics * out.size();
        const auto weigh_common = static_cast<float>(scale * common);
        const auto weigh_topic = static_cast<float>(scale * topic);
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = weigh_common * common_[i] + weigh_topic * of_topic[i];
        add_noise(random, static_cast<float>(scale * own), out);
    }

  private:
    std::uint64_t seed_;
    double log_rows_;
    Permutation rank_of_;
    std::vector<float> common_;
    std::vector<float> topics_;
};

Status write_rows(format::ModelWriter& writer, const GenerateOptions& options,
                  const std::function<bool()>& interrupted) {
    const RowMaker maker(options);
    kernels::ThreadPool pool(options.threads);
    const std::size_t dim = options.dim;
    const std::size_t chunk = std::max<std::size_t>(1, kChunkBytes / (dim * sizeof(float)));
    std::vector<float> vectors;
    std::vector<double> norms;
    std::vector<std::uint32_t> ranks;
    for (std::uint64_t first = 0; first < options.rows; first += chunk) {
        if (interrupted && interrupted()) return Error{ErrorCode::interrupted, "interrupted"};
        const auto rows =
            static_cast<std::size_t>(std::min<std::uint64_t>(chunk, options.rows - first));
        vectors.resize(rows * dim);
        norms.resize(rows);
        ranks.resize(rows);
        pool.for_ranges(rows, 256, [&](std::size_t begin, std::size_t end) {
            for (std::size_t r = begin; r < end; ++r) {
                const std::span row(vectors.data() + r * dim, dim);
                maker.fill(first + r, row);
                norms[r] = kernels::canonical_norm(row.data(), dim);
                ranks[r] = maker.rank(first + r);
            }
        });
        if (Status written = writer.append_vectors(vectors); !written) return written;
        if (Status written = writer.append_norms(norms); !written) return written;
        if (Status written = writer.append_ranks(ranks); !written) return written;
    }
    return {};
}

std::string report_json(const GenerateOptions& options) {
    return fmt::format(
        "{{\n  \"tool\": \"gloved-bench\",\n  \"source\": \"gloved-bench --rows {0} --dim {1} "
        "--seed {2}\",\n  \"format\": \"generated\",\n"
        "  \"rows\": {0},\n  \"dim\": {1},\n  \"tool_version\": \"{3}\"\n}}\n",
        options.rows, options.dim, options.seed, kProgramVersion);
}

}  // namespace

Result<format::Header> generate_model(const std::string& directory, const GenerateOptions& options,
                                      const std::function<bool()>& interrupted) {
    auto staging = format::Staging::create(directory);
    if (!staging) return staging.error();
    auto writer = format::ModelWriter::create(staging->directory_fd(), staging->path(),
                                              options.rows, options.dim);
    if (!writer) return writer.error();
    if (Status written = KeyTree(*writer, options.seed, interrupted).append(options.rows); !written)
        return written.error();
    if (Status written = write_rows(*writer, options, interrupted); !written)
        return written.error();
    auto header = writer->finish();
    if (!header) return header.error();
    const Status reported =
        format::write_report(staging->directory_fd(), staging->path(), report_json(options));
    if (!reported) return reported.error();
    if (Status published = staging->publish([](const std::string&) {}); !published)
        return published.error();
    return header;
}

Result<ScratchDirectory> ScratchDirectory::create() {
    const char* base = std::getenv("TMPDIR");
    ScratchDirectory scratch;
    std::string path =
        std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/gloved-bench-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return system_error(path, "cannot create", errno);
    scratch.path_ = std::move(path);
    return scratch;
}

ScratchDirectory::~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace gloved::bench
