#include "tools/source/array_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/npy.hpp"
#include "common/quoting.hpp"

namespace gloved::source {
namespace {

using Shape = std::vector<std::uint64_t>;

constexpr std::size_t kListedTensors = 20;
/// Bytes before a safetensors header: its size.
constexpr std::size_t kSizeBytes = sizeof(std::uint64_t);

struct TypeName {
    std::string_view name;
    NumberType type;
};
/// NumPy's names stand behind «<» or «>».
constexpr TypeName kNumPyTypes[] = {
    {"f2", NumberType::float16}, {"f4", NumberType::float32}, {"f8", NumberType::float64}};
constexpr TypeName kTensorTypes[] = {{"F16", NumberType::float16},
                                     {"BF16", NumberType::bfloat16},
                                     {"F32", NumberType::float32},
                                     {"F64", NumberType::float64}};

std::optional<NumberType> type_of(std::string_view name, std::span<const TypeName> types) {
    const auto found = std::ranges::find(types, name, &TypeName::name);
    if (found == types.end()) return std::nullopt;
    return found->type;
}

/// The end of a message: how to write `array`, an expression in Python.
std::string save_again(std::string_view array, bool is_tensor) {
    return fmt::format(
        "write it again in Python: {}{}{}",
        is_tensor ? "safetensors.numpy.save_file({\"embeddings\": " : "numpy.save(path, ", array,
        is_tensor ? "}, path)" : ")");
}

/// Sets rows, dim and file_bytes, and checks the shape.
Status set_shape(const Shape& shape, ArrayLayout& array) {
    const auto refused = [&](std::string_view why, std::string_view repaired) {
        return bad_source("its shape is ({}): {}; {}", fmt::join(shape, ", "), why,
                          save_again(repaired, !array.tensor.empty()));
    };
    if (shape.size() != 2) {
        return refused(
            "vectors have two dimensions, words and numbers",
            shape.size() < 2 ? "array.reshape(words, numbers)" : "array.reshape(len(array), -1)");
    }
    if (shape[0] == 0 || shape[1] == 0) return refused("it holds no numbers", "array");
    if (shape[1] > format::kMaxDim) {
        return refused(fmt::format("at most {} numbers a word can be taken", format::kMaxDim),
                       fmt::format("array[:, :{}]", format::kMaxDim));
    }
    array.rows = shape[0];
    array.dim = static_cast<std::size_t>(shape[1]);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(array.rows, array.row_bytes(), &bytes) ||
        __builtin_add_overflow(array.offset, bytes, &array.file_bytes)) {
        return refused("no file can be as long", "array");
    }
    return {};
}

/// Why NumPy's type `descr` cannot be taken, and what to write instead.
std::string other_type(std::string_view descr) {
    const std::string shown = printable(descr, 80);
    const auto again = [&](std::string_view what, std::string_view repaired) {
        return fmt::format("its numbers are {}; {}", what, save_again(repaired, false));
    };
    if (descr.starts_with('[')) {
        return again("the fields of a structured array, " + shown,
                     "numpy.lib.recfunctions.structured_to_unstructured(array)");
    }
    if (descr.ends_with('O')) {
        return "this is an array of Python objects, which are pickled; it is not unpickled, which "
               "could run any program; " +
               save_again("numpy.array(array.tolist(), 'float32')", false);
    }
    if (descr.substr(0, 2).ends_with('c')) return again("complex, " + shown, "array.real");
    return again(shown + ", and float16, float32 or float64 are taken", "array.astype('float32')");
}

Result<ArrayLayout> find_numpy_array(std::string_view head) {
    const auto header = npy::parse_header(head.substr(0, npy::kMaxHeaderBytes), "");
    if (!header) return bad_source("{}", header.error().message);
    const std::string_view descr = header->descr;
    const auto type = descr.starts_with('<') || descr.starts_with('>')
                          ? type_of(descr.substr(1), kNumPyTypes)
                          : std::nullopt;
    if (!type) return bad_source("{}", other_type(descr));
    ArrayLayout array;
    array.type = *type;
    array.big_endian = descr.starts_with('>');
    array.fortran_order = header->fortran_order;
    array.dtype = descr;
    array.offset = header->data_offset;
    const Shape shape(header->shape.begin(), header->shape.end());
    if (Status set = set_shape(shape, array); !set) return set.error();
    return array;
}

// ---- safetensors: the header's size in 8 bytes, the header in JSON, the numbers of all tensors.

struct Tensor {
    std::string name;
    std::string dtype;
    Shape shape;
    std::uint64_t begin = 0;  // behind the header
    std::uint64_t end = 0;
};

/// A list of whole numbers.
std::optional<Shape> sizes_of(const nlohmann::json& json) {
    const auto is_size = [](const nlohmann::json& size) { return size.is_number_unsigned(); };
    if (!json.is_array() || !std::ranges::all_of(json, is_size)) return std::nullopt;
    return json.get<Shape>();
}

std::optional<Tensor> read_tensor(const std::string& name, const nlohmann::json& json) {
    if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
        !json.contains("shape") || !json.contains("data_offsets")) {
        return std::nullopt;
    }
    const auto shape = sizes_of(json["shape"]);
    const auto offsets = sizes_of(json["data_offsets"]);
    if (!shape || !offsets || offsets->size() != 2) return std::nullopt;
    return Tensor{name, json["dtype"].get<std::string>(), *shape, (*offsets)[0], (*offsets)[1]};
}

/// The tensors of a header, in the order of their numbers. Error: its message is what is wrong.
Result<std::vector<Tensor>> read_tensors(std::string_view header) {
    // Nothing that a header needs is deeper; what is, would take memory.
    constexpr int kMaxDepth = 3;
    const auto json = nlohmann::json::parse(
        header, [](int depth, auto, auto&) { return depth <= kMaxDepth; }, false);
    if (!json.is_object()) return bad_source("it is no JSON object");
    std::vector<Tensor> tensors;
    for (const auto& [name, value] : json.items()) {
        if (name == "__metadata__") continue;
        auto tensor = read_tensor(name, value);
        if (!tensor) {
            return bad_source("the tensor {} lacks dtype, shape or data_offsets",
                              printable(name, 80));
        }
        tensors.push_back(*std::move(tensor));
    }
    std::ranges::sort(tensors, {},
                      [](const Tensor& tensor) { return std::pair(tensor.begin, tensor.end); });
    std::uint64_t end = 0;
    for (const Tensor& tensor : tensors) {
        if (tensor.begin != end || tensor.end < tensor.begin) {
            return bad_source(
                "the tensor {} has the bytes {} to {}, and the tensors before it end at {}",
                printable(tensor.name, 80), tensor.begin, tensor.end, end);
        }
        end = tensor.end;
    }
    return tensors;
}

/// «"embeddings" F32 (29528, 256), "weights" F64 (29528)»
std::string list_of(std::span<const Tensor> tensors) {
    std::string list;
    for (const Tensor& tensor : tensors.first(std::min(tensors.size(), kListedTensors))) {
        list += fmt::format("{}{} {} ({})", list.empty() ? "" : ", ", printable(tensor.name, 80),
                            without_control_bytes(tensor.dtype), fmt::join(tensor.shape, ", "));
    }
    if (tensors.size() > kListedTensors)
        list += fmt::format(", and {} more", tensors.size() - kListedTensors);
    return list;
}

Result<const Tensor*> choose_tensor(std::span<const Tensor> tensors, const std::string& wanted) {
    if (tensors.empty()) return bad_source("it holds no tensors; fetch the download again");
    if (wanted.empty() && tensors.size() == 1) return &tensors.front();
    if (wanted.empty()) {
        return bad_source(
            "it holds {} tensors; --tensor NAME takes one of two dimensions, and --words FILE the "
            "words of its rows: {}",
            tensors.size(), list_of(tensors));
    }
    const auto found = std::ranges::find(tensors, wanted, &Tensor::name);
    if (found != tensors.end()) return &*found;
    return bad_source("it holds no tensor {}; it holds {}", printable(wanted, 80),
                      list_of(tensors));
}

Result<ArrayLayout> find_tensor(std::string_view head, const std::string& wanted) {
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, head.data(), kSizeBytes);
    if (header_bytes > kMaxTensorHeaderBytes - kSizeBytes) {
        return bad_source(
            "its safetensors header has {} bytes, and at most {} are read; write the "
            "one tensor of vectors to a file of its own",
            header_bytes, kMaxTensorHeaderBytes - kSizeBytes);
    }
    if (head.size() - kSizeBytes < header_bytes) {
        return bad_source(
            "it ends within its safetensors header, {} bytes before the header's end; the download "
            "is not complete, fetch it again",
            header_bytes - (head.size() - kSizeBytes));
    }
    const auto tensors =
        read_tensors(head.substr(kSizeBytes, static_cast<std::size_t>(header_bytes)));
    const auto damaged = [](std::string_view what) {
        return bad_source("its safetensors header is damaged: {}; fetch it again", what);
    };
    constexpr std::string_view kTooLong = "no file can be as long";
    if (!tensors) return damaged(tensors.error().message);
    const auto chosen = choose_tensor(*tensors, wanted);
    if (!chosen) return chosen.error();
    const Tensor& tensor = **chosen;
    const auto type = type_of(tensor.dtype, kTensorTypes);
    if (!type) {
        return bad_source(
            "the numbers of its tensor {} are {}, and F16, BF16, F32 or F64 are taken; {}",
            printable(tensor.name, 80), printable(tensor.dtype, 80),
            save_again("array.astype('float32')", true));
    }
    ArrayLayout array;
    array.type = *type;
    array.dtype = tensor.dtype;
    array.tensor = tensor.name;
    array.alone = tensors->size() == 1;
    if (__builtin_add_overflow(kSizeBytes + header_bytes, tensor.begin, &array.offset))
        return damaged(kTooLong);
    if (Status set = set_shape(tensor.shape, array); !set) return set.error();
    if (array.file_bytes - array.offset != tensor.end - tensor.begin) {
        return damaged(fmt::format("the tensor {} has {} bytes, and a shape of {}",
                                   printable(tensor.name, 80), tensor.end - tensor.begin,
                                   array.file_bytes - array.offset));
    }
    if (__builtin_add_overflow(kSizeBytes + header_bytes, tensors->back().end, &array.file_bytes))
        return damaged(kTooLong);
    return array;
}

// ---- Numbers

std::uint16_t swapped(std::uint16_t bits) { return __builtin_bswap16(bits); }
std::uint32_t swapped(std::uint32_t bits) { return __builtin_bswap32(bits); }
std::uint64_t swapped(std::uint64_t bits) { return __builtin_bswap64(bits); }

template <class Bits>
Bits bits_at(const char* numbers, const ArrayLayout& array, std::size_t i) {
    Bits bits = 0;
    std::memcpy(&bits, numbers + i * sizeof bits, sizeof bits);
    return array.big_endian ? swapped(bits) : bits;
}

/// `convert` makes a float of a number's bits.
template <class Bits, class Convert>
void convert_each(const char* numbers, const ArrayLayout& array, float* values, Convert convert) {
    for (std::size_t i = 0; i < array.dim; ++i)
        values[i] = convert(bits_at<Bits>(numbers, array, i));
}

/// The exponent of a float16 is 112 too small for a float32, whose mantissa has 13 bits more. The
/// product is exact, also for denormal numbers.
float from_float16(std::uint16_t bits) {
    constexpr std::uint32_t kSign = 0x8000;
    constexpr std::uint32_t kInfinity = 0x7C00;
    const std::uint32_t sign = (bits & kSign) << 16;
    const std::uint32_t rest = bits & ~kSign;
    if (rest >= kInfinity) return std::bit_cast<float>(sign | 0x7F80'0000 | rest << 13);
    return std::bit_cast<float>(sign | rest << 13) * 0x1p112F;
}

}  // namespace

bool is_safetensors(std::string_view head) {
    constexpr std::string_view kZeros("\0\0\0\0", 4);
    return head.size() > kSizeBytes && head.substr(4, 4) == kZeros && head[kSizeBytes] == '{';
}

Result<ArrayLayout> find_array(std::string_view head, const std::string& tensor) {
    return npy::is_npy(head) ? find_numpy_array(head) : find_tensor(head, tensor);
}

double float64_at(const char* numbers, const ArrayLayout& array, std::size_t i) {
    return std::bit_cast<double>(bits_at<std::uint64_t>(numbers, array, i));
}

void convert_numbers(const char* numbers, const ArrayLayout& array, float* values) {
    switch (array.type) {
        case NumberType::float16:
            return convert_each<std::uint16_t>(numbers, array, values, from_float16);
        case NumberType::bfloat16:
            return convert_each<std::uint16_t>(numbers, array, values, [](std::uint16_t bits) {
                return std::bit_cast<float>(std::uint32_t{bits} << 16);
            });
        case NumberType::float32:
            if (!array.big_endian) {
                std::memcpy(values, numbers, array.row_bytes());
                return;
            }
            return convert_each<std::uint32_t>(numbers, array, values, [](std::uint32_t bits) {
                return std::bit_cast<float>(bits);
            });
        case NumberType::float64:
            return convert_each<std::uint64_t>(numbers, array, values, [](std::uint64_t bits) {
                return static_cast<float>(std::bit_cast<double>(bits));
            });
    }
}

}  // namespace gloved::source
