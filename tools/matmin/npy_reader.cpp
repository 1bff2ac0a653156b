#include "tools/matmin/npy_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "kernels/reduce/min_max.hpp"
#include "tools/source/input.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::matmin {
namespace {

/// Numbers converted at a time: they are still in the cache when they are reduced.
constexpr std::size_t kSliceNumbers = 8192;

template <class T>
struct Part {
    std::string bytes;
    Intake<T> intake;
    std::optional<std::size_t> nan;  ///< index of the first, if there is one
};

template <class F>
bool is_nan(F number) {
    if constexpr (std::is_floating_point_v<F>) return std::isnan(number);
    return false;
}

std::string_view type_name(npy::Type type) {
    switch (type) {
        case npy::Type::float32:
            return "float32";
        case npy::Type::float64:
            return "float64";
        case npy::Type::int32:
            return "int32";
        case npy::Type::other:
            break;
    }
    return {};
}

/// «(4, 3)» as Python writes it.
std::string shape_text(const std::vector<std::size_t>& shape) {
    return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

/// Describes what is wrong with the array's shape or type; empty if nothing is.
template <class T>
std::string header_fault(const npy::Header& header) {
    const auto& shape = header.shape;
    if (shape.size() != 3) {
        const std::string remedy =
            shape.size() == 2
                ? fmt::format("array.reshape(-1, ROWS, {}), or array[None] if it is one matrix",
                              shape[1])
                : "array.reshape(-1, ROWS, COLUMNS)";
        return fmt::format(
            "its array has the shape {}, and (matrices, rows, columns) is needed; numpy: "
            "numpy.save(path, {})",
            shape_text(shape), remedy);
    }
    if (shape[0] == 0)
        return fmt::format(
            "its array has the shape {}, and of no matrices there is no minimum; there must be one "
            "at least",
            shape_text(shape));
    if (shape[1] == 0 || shape[2] == 0)
        return fmt::format("its array has the shape {}, so its matrices have no numbers",
                           shape_text(shape));
    if (header.type == npy::Type::other) {
        return fmt::format(
            "its numbers are {}, and float64, float32 and int32 are taken; numpy: numpy.save(path, "
            "array.astype(numpy.float64))",
            printable(header.descr));
    }
    const std::string_view type = type_name(header.type);
    if (type != kTypeName<T> && !std::is_same_v<T, double>) {
        return fmt::format(
            "its numbers are {0}, which --type {1} may not hold exactly; leave --type out, give "
            "--type float64, or numpy: numpy.save(path, array.astype(numpy.{1}))",
            type, kTypeName<T>);
    }
    return {};
}

/// Appends numbers that the file has as F. Returns the index of the first NaN.
template <class F, class T>
std::optional<std::size_t> append(std::string_view bytes, std::size_t width, Intake<T>& intake) {
    const std::size_t slice_matrices = std::max<std::size_t>(1, kSliceNumbers / width);
    const std::size_t numbers = bytes.size() / sizeof(F);
    for (std::size_t done = 0; done < numbers;) {
        const std::size_t count = std::min(numbers - done, slice_matrices * width);
        T* const out = intake.next(count);
        bool nan = false;
        for (std::size_t i = 0; i < count; ++i) {
            F number;
            std::memcpy(&number, bytes.data() + (done + i) * sizeof(F), sizeof number);
            nan |= is_nan(number);
            out[i] = static_cast<T>(number);
        }
        if (nan) {
            const T* const first = std::find_if(out, out + count, is_nan<T>);
            return done + static_cast<std::size_t>(first - out);
        }
        intake.end_matrices(count / width);
        done += count;
    }
    intake.end();
    return std::nullopt;
}

template <class T>
std::optional<std::size_t> append_as(npy::Type type, std::string_view bytes, std::size_t width,
                                     Intake<T>& intake) {
    // header_fault lets pass only T, and for float64 what it holds exactly.
    if constexpr (std::is_same_v<T, double>) {
        if (type == npy::Type::float32) return append<float>(bytes, width, intake);
        if (type == npy::Type::int32) return append<std::int32_t>(bytes, width, intake);
    }
    return append<T>(bytes, width, intake);
}

/// Makes `bytes` the next ones of the array, of which `left` were not read yet: at most
/// `part_bytes`, in whole matrices. Empty at the end. Errors: those of Input::read; bad_source if
/// the file ends within them.
Status read_matrices(source::Input& input, const npy::Header& header, std::size_t part_bytes,
                     std::size_t& left, std::string& bytes) {
    bytes.resize(std::min(left, part_bytes));
    const auto got = input.read(bytes);
    if (!got) return got.error();
    left -= *got;
    const bool is_all = *got == bytes.size();
    // Whole matrices before the end are checked too, so that the first fault is the same for any
    // block size.
    bytes.resize(*got - *got % (header.data_bytes / header.shape[0]));
    if (is_all || !bytes.empty()) return {};
    return bad_source(
        "{}: is cut short: {} bytes of numbers are there, and its "
        "header says {}; copy or write it again",
        input.name(), header.data_bytes - left, header.data_bytes);
}

}  // namespace

template <class T>
Result<Reading<T>> read_npy(source::Input& input, const npy::Header& header,
                            const ReadOptions& options, const Begin<T>& begin) {
    const auto started = std::chrono::steady_clock::now();
    if (const std::string fault = header_fault<T>(header); !fault.empty())
        return bad_source("{}: {}", input.name(), fault);
    const Shape shape{header.shape[1], header.shape[2]};
    const std::uint64_t announced = header.shape[0];
    const std::size_t matrix_bytes = header.data_bytes / announced;
    if (matrix_bytes > options.matrix_bytes) {
        return bad_source("{}: one of its matrices has more than {} MiB; that is too large",
                          input.name(), options.matrix_bytes >> 20);
    }
    const auto reducer = begin(announced, shape);
    if (!reducer) return reducer.error();

    Reading<T> reading;
    reading.shape = shape;
    reading.range = kernels::reduce::MinMax<T>(shape.numbers());
    reading.bytes = header.data_offset;
    const auto skipped = input.skip(header.data_offset);
    if (!skipped) return skipped.error();
    std::size_t left = header.data_bytes;
    const std::size_t part_bytes =
        std::max<std::size_t>(1, options.block_bytes / matrix_bytes) * matrix_bytes;
    Progress progress("reading", input.total_bytes());
    const auto produce = [&](Part<T>& part) -> Result<bool> {
        progress.update(input.source_bytes());
        Status got = read_matrices(input, header, part_bytes, left, part.bytes);
        if (!got) return got.error();
        return !part.bytes.empty();
    };
    const auto work = [&](Part<T>& part) {
        part.intake.begin(shape, *reducer != nullptr);
        part.nan = append_as(header.type, part.bytes, shape.numbers(), part.intake);
    };
    const auto consume = [&](Part<T>& part) -> Status {
        if (part.nan) {
            const std::size_t matrix = *part.nan / shape.numbers();
            const std::size_t element = *part.nan % shape.numbers();
            return bad_source(
                "{}: array[{}, {}, {}] is NaN, which cannot be compared with "
                "numbers; numpy.argwhere(numpy.isnan(array)) finds all",
                input.name(), reading.count + matrix, element / shape.columns,
                element % shape.columns);
        }
        Status taken = merge_part(part.intake, part.intake.matrices(), *reducer, reading);
        if (!taken) return taken;
        reading.count += part.intake.matrices();
        reading.bytes += part.bytes.size();
        return {};
    };
    if (Status read = source::run_ordered<Part<T>>(options.threads, produce, work, consume); !read)
        return read.error();
    const auto surplus = input.skip(1);
    if (!surplus) return surplus.error();
    if (*surplus != 0) {
        return bad_source(
            "{}: more bytes follow the {} of numbers that its header "
            "says; write it again with numpy.save",
            input.name(), header.data_bytes);
    }
    finish_times(started, options, *reducer == nullptr, reading);
    return reading;
}

template Result<Reading<float>> read_npy(source::Input&, const npy::Header&, const ReadOptions&,
                                         const Begin<float>&);
template Result<Reading<double>> read_npy(source::Input&, const npy::Header&, const ReadOptions&,
                                          const Begin<double>&);
template Result<Reading<std::int32_t>> read_npy(source::Input&, const npy::Header&,
                                                const ReadOptions&, const Begin<std::int32_t>&);

}  // namespace gloved::matmin
