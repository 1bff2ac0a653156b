#include "tools/matmin/result_text.hpp"

#include <cassert>
#include <charconv>
#include <cstddef>

namespace gloved::matmin {

template <class T>
std::string matrix_text(std::span<const T> numbers, Shape shape) {
    assert(numbers.size() == shape.numbers());
    std::string text;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        char number[32];  // no float64 needs more than 24
        text.append(number, std::to_chars(number, number + sizeof number, numbers[i]).ptr);
        text += (i + 1) % shape.columns == 0 ? '\n' : ' ';
    }
    return text;
}

template std::string matrix_text(std::span<const float>, Shape);
template std::string matrix_text(std::span<const double>, Shape);
template std::string matrix_text(std::span<const std::int32_t>, Shape);

}  // namespace gloved::matmin
