#include "tools/matmin/text_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "common/error_with.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "common/text_lines.hpp"
#include "kernels/reduce/min_max.hpp"
#include "tools/matmin/text_part.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::matmin {
namespace {

/// Keeps counts of numbers and of their bytes below 2^63.
constexpr std::uint64_t kMaxNumbers = std::uint64_t{1} << 56;

/// Appends a block to `buffer`, or doubles it if that is more, so that rescanning it stays linear.
/// Returns whether there may be more.
Result<bool> read_more(source::Input& input, std::size_t block_bytes, std::string& buffer) {
    const std::size_t held = buffer.size();
    buffer.resize(held + std::max(block_bytes, held));
    auto got = input.read(std::span(buffer).subspan(held));
    if (!got) return got.error();
    const bool more = *got == buffer.size() - held;
    buffer.resize(held + *got);
    return more;
}

/// The text before the first matrix, and that matrix's shape.
struct Beginning {
    std::uint64_t count = 0;
    std::uint64_t count_line = 0;  ///< from 0
    std::size_t bytes = 0;    ///< to the end of the separator before the first matrix, if there is
                              ///< one
    std::uint64_t lines = 0;  ///< in these
    Shape shape;
};

Error bad_line(const source::Input& input, std::uint64_t line, const std::string& message) {
    return bad_source("{}: line {}: {}", input.name(), line + 1, message);
}

/// Parses the line of the count.
Result<std::uint64_t> parse_count(const source::Input& input, std::string_view trimmed,
                                  std::uint64_t line) {
    const auto fault = [&](const std::string& message) { return bad_line(input, line, message); };
    constexpr const char* kRemedy = "put the number of matrices on a line of its own before them";
    if (is_separator(trimmed))
        return fault(fmt::format("the count is missing before ***; {}", kRemedy));
    std::uint64_t count = 0;
    const char* const last = trimmed.data() + trimmed.size();
    const auto [end, error] = std::from_chars(trimmed.data(), last, count);
    if (end == last && error == std::errc::result_out_of_range) {
        return fault(fmt::format("{} matrices are too many; put the number that follows there",
                                 printable(trimmed)));
    }
    if (end != last || error != std::errc()) {
        return fault(fmt::format("{} is not a count of matrices; {}", printable(trimmed), kRemedy));
    }
    if (count == 0)
        return fault(
            "the count is 0, and of no matrices there is no minimum; there must be one at least");
    return count;
}

/// Parses the beginning of the text. nullopt if `text` is not all and ends within the first matrix.
Result<std::optional<Beginning>> parse_beginning(const source::Input& input, std::string_view text,
                                                 bool is_all) {
    Beginning found;
    bool counted = false;
    bool separated = false;
    const auto begin = begin_of_text(text, input.name());
    if (!begin) return begin.error();
    std::size_t at = *begin;
    for (std::uint64_t line = 0; at < text.size(); ++line) {
        const std::size_t newline = text.find('\n', at);
        if (newline == std::string_view::npos && !is_all) return std::optional<Beginning>();
        const std::string_view trimmed = trim(text.substr(at, newline - at));
        at = newline == std::string_view::npos ? text.size() : newline + 1;
        if (trimmed.empty()) continue;
        if (!counted) {
            auto count = parse_count(input, trimmed, line);
            if (!count) return count.error();
            found.count = *count;
            found.count_line = line;
            counted = true;
        } else if (is_separator(trimmed)) {
            if (found.shape.rows != 0) return std::optional(found);
            if (separated) {
                return bad_line(input, line,
                                "nothing stands between this line of *** and the one before; "
                                "remove one of them");
            }
            separated = true;
        } else {
            if (found.shape.rows++ == 0) found.shape.columns = count_words(trimmed);
            continue;
        }
        found.bytes = at;
        found.lines = line + 1;
    }
    if (!is_all) return std::optional<Beginning>();
    if (!counted)
        return bad_source(
            "{}: is empty; the first line holds the number of matrices, and they follow",
            input.name());
    if (found.shape.rows == 0) {
        return bad_line(
            input, found.count_line,
            fmt::format("the count is {}, and no matrix follows; the text is not complete",
                        found.count));
    }
    return std::optional(found);
}

Status check_matrix_bytes(const source::Input& input, const ReadOptions& options,
                          std::string_view matrix) {
    if (matrix.size() <= options.matrix_bytes) return {};
    return bad_source(
        "{}: a matrix has more than {} MiB of text; lines of *** are missing, or it is too large",
        input.name(), options.matrix_bytes >> 20);
}

/// Finds the end of the last whole line of *** in `text`; 0 if there is none. Searches from `from`,
/// the begin of a line, and then moves it to where to search when there is more text.
std::size_t find_part_end(std::string_view text, std::size_t& from) {
    const auto line_begin = [&](std::size_t at) {
        const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
        return newline == std::string_view::npos || newline < from ? from : newline + 1;
    };
    const std::size_t unfinished = line_begin(text.size());
    for (std::size_t end = unfinished; end > from;) {
        const std::size_t star = text.rfind('*', end - 1);
        if (star == std::string_view::npos || star < from) break;
        const std::size_t begin = line_begin(star);
        const std::size_t newline = text.find('\n', star);
        if (is_separator(trim(text.substr(begin, newline - begin)))) return newline + 1;
        end = begin;
    }
    from = unfinished;
    return 0;
}

/// A part of the text, read by the calling thread and parsed by a worker.
template <class T>
struct Part {
    std::string text;
    Intake<T> intake;
    std::uint64_t lines = 0;
    std::optional<TextFault> fault;
};

/// Reads the next part into `text`, ended by LF. Each but the last ends with a separator. False at
/// the end.
Result<bool> read_part(source::Input& input, const ReadOptions& options, std::string& text) {
    text.clear();
    std::size_t from = 0;
    std::size_t end = 0;
    for (bool more = true; more && end == 0;) {
        if (Status sized = check_matrix_bytes(input, options, text); !sized) return sized.error();
        const auto read = read_more(input, options.block_bytes, text);
        if (!read) return read.error();
        more = *read;
        end = find_part_end(text, from);
    }
    if (end != 0) {
        input.unread(std::span(text).subspan(end));
        text.resize(end);
    }
    if (!text.empty() && text.back() != '\n') text += '\n';
    return !text.empty();
}

/// Reads the text before the first matrix.
Result<Beginning> read_beginning(source::Input& input, const ReadOptions& options) {
    std::string text;
    for (bool ended = false;;) {
        auto found = parse_beginning(input, text, ended);
        if (!found) return found.error();
        if (*found) {
            input.unread(std::span(text).subspan((*found)->bytes));
            return **found;
        }
        if (Status sized = check_matrix_bytes(input, options, text); !sized) return sized.error();
        const auto more = read_more(input, options.block_bytes, text);
        if (!more) return more.error();
        ended = !*more;
    }
}

Error too_few_matrices(const source::Input& input, const Beginning& beginning, std::uint64_t count,
                       std::uint64_t lines) {
    const Shape& shape = beginning.shape;
    const bool unseparated = count == 1 && shape.rows % beginning.count == 0;
    return bad_line(
        input, beginning.count_line,
        fmt::format("the count is {}, but {} {} there, up to line {}; {}", beginning.count,
                    count == 1 ? fmt::format("one matrix of {} × {}", shape.rows, shape.columns)
                               : fmt::to_string(count),
                    count == 1 ? "is" : "are", lines,
                    unseparated ? "put lines of *** between matrices"
                                : "correct the count, or complete the text"));
}

}  // namespace

template <class T>
Result<Reading<T>> read_text(source::Input& input, const ReadOptions& options,
                             const Begin<T>& begin) {
    const auto started = std::chrono::steady_clock::now();
    const auto beginning = read_beginning(input, options);
    if (!beginning) return beginning.error();
    const Shape shape = beginning->shape;
    const std::uint64_t announced = beginning->count;
    if (announced > kMaxNumbers / shape.numbers()) {
        return bad_line(input, beginning->count_line,
                        fmt::format("{} matrices of {} × {} are too many; correct the count",
                                    announced, shape.rows, shape.columns));
    }
    const auto reducer = begin(announced, shape);
    if (!reducer) return reducer.error();

    Reading<T> reading;
    reading.shape = shape;
    reading.range = kernels::reduce::MinMax<T>(shape.numbers());
    reading.bytes = beginning->bytes;
    std::uint64_t line = beginning->lines;  // where the next part begins, from 0
    std::optional<std::uint64_t> surplus_line;
    Progress progress("reading", input.total_bytes());
    const auto produce = [&](Part<T>& part) {
        progress.update(input.source_bytes());
        return read_part(input, options, part.text);
    };
    const auto work = [&](Part<T>& part) {
        part.intake.begin(shape, *reducer != nullptr);
        part.fault = parse_part(part.text, shape, part.intake, part.lines);
    };
    const auto consume = [&](Part<T>& part) -> Status {
        if (part.fault) return bad_line(input, line + part.fault->line, part.fault->message);
        // Matrices beyond the count are counted for the message.
        const std::uint64_t matrices = part.intake.matrices();
        const std::uint64_t wanted =
            std::min(matrices, announced - std::min(announced, reading.count));
        if (wanted < matrices && !surplus_line)
            surplus_line = line + line_of_matrix(part.text, wanted);
        if (Status taken = merge_part(part.intake, wanted, *reducer, reading); !taken) return taken;
        reading.count += matrices;
        reading.bytes += part.text.size();
        line += part.lines;
        return {};
    };
    if (Status read = source::run_ordered<Part<T>>(options.threads, produce, work, consume); !read)
        return read.error();
    if (surplus_line) {
        return bad_line(
            input, *surplus_line,
            fmt::format("matrix {} begins here, but the count on line {} is {}, and there are {} "
                        "in all; correct the count, or remove what is too much",
                        announced + 1, beginning->count_line + 1, announced, reading.count));
    }
    if (reading.count < announced) return too_few_matrices(input, *beginning, reading.count, line);
    finish_times(started, options, *reducer == nullptr, reading);
    return reading;
}

template Result<Reading<float>> read_text(source::Input&, const ReadOptions&, const Begin<float>&);
template Result<Reading<double>> read_text(source::Input&, const ReadOptions&,
                                           const Begin<double>&);
template Result<Reading<std::int32_t>> read_text(source::Input&, const ReadOptions&,
                                                 const Begin<std::int32_t>&);

}  // namespace gloved::matmin
