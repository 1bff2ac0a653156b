#include "tools/matmin/source.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "tools/matmin/npy_reader.hpp"
#include "tools/matmin/text_reader.hpp"

namespace gloved::matmin {
namespace {

constexpr std::size_t kMagicBytes = 8;

}  // namespace

Result<Source> Source::open(const std::string& path, const std::atomic<bool>& stop,
                            const std::string& member) {
    auto input = source::Input::open(path, stop, member);
    if (!input) return input.error();
    if (Status used = input->check_member(member); !used) return used.error();
    Source source(*std::move(input));
    for (const std::size_t bytes : {kMagicBytes, npy::kMaxHeaderBytes}) {
        const std::size_t held = source.head_.size();
        source.head_.resize(bytes);
        auto got = source.input_.read(std::span(source.head_).subspan(held));
        if (!got) return got.error();
        source.head_.resize(held + *got);
        if (!npy::is_npy(source.head_)) return source;
    }
    auto header = npy::parse_header(source.head_, path);
    if (!header) return header.error();
    if (Status plain = npy::check_plain(*header, path); !plain) return plain.error();
    source.header_ = *std::move(header);
    return source;
}

template <class T>
Result<Reading<T>> Source::read(const ReadOptions& options, const Begin<T>& begin) {
    if (header_) return read_npy<T>(input_, std::move(head_), *header_, options, begin);
    return read_text<T>(input_, std::move(head_), options, begin);
}

template Result<Reading<float>> Source::read(const ReadOptions&, const Begin<float>&);
template Result<Reading<double>> Source::read(const ReadOptions&, const Begin<double>&);
template Result<Reading<std::int32_t>> Source::read(const ReadOptions&, const Begin<std::int32_t>&);

}  // namespace gloved::matmin
