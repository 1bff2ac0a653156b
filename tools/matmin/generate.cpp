#include "tools/matmin/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>
#include <span>

#include "common/files.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::matmin {
namespace {

/// Numbers that a thread makes at a time. The text depends on it.
constexpr std::size_t kBlockNumbers = 1 << 16;
/// Maximum of bytes of a number with its blank.
constexpr std::size_t kNumberBytes = 8;

struct Block {
    std::uint64_t index = 0;
    std::uint64_t count = 0;
    std::string text;
    std::vector<std::int64_t> minimum;
    std::vector<std::int64_t> maximum;
};

/// Draws integers or thousandths and writes them as text.
class Maker {
  public:
    explicit Maker(const GenerateOptions& options)
        : options_(options),
          thousandths_(options.numbers == Numbers::decimals),
          most_(thousandths_ ? 99'999 : 999) {}

    void make(Block& block) const {
        const std::size_t width = options_.rows * options_.columns;
        std::mt19937_64 random(options_.seed * 0x9E3779B97F4A7C15 + block.index);
        block.minimum.assign(width, std::numeric_limits<std::int64_t>::max());
        block.maximum.assign(width, std::numeric_limits<std::int64_t>::min());
        block.text.resize(block.count * (width * kNumberBytes + 4));
        char* at = block.text.data();
        for (std::uint64_t matrix = 0; matrix < block.count; ++matrix) {
            for (std::size_t element = 0; element < width; ++element) {
                const std::int64_t number = draw(element, random());
                block.minimum[element] = std::min(block.minimum[element], number);
                block.maximum[element] = std::max(block.maximum[element], number);
                at = write(number, at);
                *at++ = (element + 1) % options_.columns == 0 ? '\n' : ' ';
            }
            at = std::copy_n("***\n", 4, at);
        }
        block.text.resize(static_cast<std::size_t>(at - block.text.data()));
    }

    double value(std::int64_t number) const {
        return thousandths_ ? static_cast<double>(number) / 1000 : static_cast<double>(number);
    }

  private:
    /// Draws a number uniformly, up to a bias of one in a million from scaling 32 bits.
    std::int64_t draw(std::size_t element, std::uint64_t random) const {
        const auto narrower = static_cast<std::int64_t>(element % 100);
        const std::int64_t least = (thousandths_ ? -most_ : 0) + narrower;
        const auto range = static_cast<std::uint64_t>(most_ - narrower - least + 1);
        return least + static_cast<std::int64_t>((random >> 32) * range >> 32);
    }

    char* write(std::int64_t number, char* at) const {
        if (!thousandths_) return std::to_chars(at, at + kNumberBytes, number).ptr;
        if (number < 0) *at++ = '-';
        const auto magnitude = static_cast<unsigned>(number < 0 ? -number : number);
        at = std::to_chars(at, at + kNumberBytes, magnitude / 1000).ptr;
        *at++ = '.';
        for (const unsigned unit : {100U, 10U, 1U})
            *at++ = static_cast<char>('0' + magnitude / unit % 10);
        return at;
    }

    const GenerateOptions& options_;
    bool thousandths_;
    std::int64_t most_;
};

}  // namespace

Result<Generated> generate(const GenerateOptions& options, int fd, const std::string& path) {
    const std::size_t width = options.rows * options.columns;
    const std::uint64_t block_count = std::max<std::size_t>(1, kBlockNumbers / width);
    const Maker maker(options);
    Generated generated;
    generated.minimum.assign(width, std::numeric_limits<double>::infinity());
    generated.maximum.assign(width, -std::numeric_limits<double>::infinity());
    const auto append = [&](const std::string& text) -> Status {
        Status written = write_all_at(fd, std::as_bytes(std::span(text)), generated.bytes, path);
        generated.bytes += text.size();
        return written;
    };
    if (Status begun = append(fmt::format("{}\n***\n", options.count)); !begun)
        return begun.error();

    std::uint64_t blocks = 0;
    const auto produce = [&](Block& block) -> Result<bool> {
        block.index = blocks++;
        const std::uint64_t first = std::min(options.count, block.index * block_count);
        block.count = std::min(block_count, options.count - first);
        return block.count != 0;
    };
    const auto work = [&](Block& block) { maker.make(block); };
    const auto consume = [&](Block& block) -> Status {
        for (std::size_t element = 0; element < width; ++element) {
            generated.minimum[element] =
                std::min(generated.minimum[element], maker.value(block.minimum[element]));
            generated.maximum[element] =
                std::max(generated.maximum[element], maker.value(block.maximum[element]));
        }
        return append(block.text);
    };
    if (Status made = source::run_ordered<Block>(options.threads, produce, work, consume); !made)
        return made.error();
    return generated;
}

}  // namespace gloved::matmin
