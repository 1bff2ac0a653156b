#include "tools/matmin/source.hpp"

#include <cstddef>
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
    auto head = source.input_.peek(kMagicBytes);
    if (!head) return head.error();
    if (!npy::is_npy(*head)) return source;
    head = source.input_.peek(npy::kMaxHeaderBytes);
    if (!head) return head.error();
    auto header = npy::parse_header(*head, path);
    if (!header) return header.error();
    if (Status plain = npy::check_plain(*header, path); !plain) return plain.error();
    source.header_ = *std::move(header);
    return source;
}

template <class T>
Result<Reading<T>> Source::read(const ReadOptions& options, const Begin<T>& begin) {
    if (header_) return read_npy<T>(input_, *header_, options, begin);
    return read_text<T>(input_, options, begin);
}

template Result<Reading<float>> Source::read(const ReadOptions&, const Begin<float>&);
template Result<Reading<double>> Source::read(const ReadOptions&, const Begin<double>&);
template Result<Reading<std::int32_t>> Source::read(const ReadOptions&, const Begin<std::int32_t>&);

}  // namespace gloved::matmin
