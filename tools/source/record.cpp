#include "tools/source/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/quoting.hpp"

namespace gloved::source {

static_assert(std::endian::native == std::endian::little);

Record find_record(std::string_view bytes, std::size_t dim) {
    Record record;
    const std::size_t first = bytes.starts_with('\n') ? 1 : 0;
    // One byte more than the longest word, for its blank.
    const std::string_view start = bytes.substr(first, kMaxWordBytes + 1);
    const std::size_t length = start.find(' ');
    if (length == std::string_view::npos) {
        if (start.size() > kMaxWordBytes) record.state = Record::State::no_blank;
        record.word = start;
        return record;
    }
    record.word = start.substr(0, length);
    record.bytes = first + length + 1 + dim * sizeof(float);
    if (record.bytes > bytes.size()) return record;
    record.numbers = bytes.data() + first + length + 1;
    record.state = Record::State::whole;
    return record;
}

std::optional<LineProblem> parse_record(const Record& record, std::size_t dim, float* values) {
    std::memcpy(values, record.numbers, dim * sizeof(float));
    const float* const bad =
        std::find_if(values, values + dim, [](float value) { return !std::isfinite(value); });
    if (bad != values + dim) {
        return LineProblem{
            LineFault::not_finite,
            fmt::format("number {} of {} is {}, which is not finite (the word is {})",
                        bad - values + 1, dim, *bad, printable(record.word))};
    }
    return check_key(record.word);
}

}  // namespace gloved::source
