#include "tools/distmat/distmat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/npy.hpp"
#include "common/output_file.hpp"
#include "common/progress.hpp"
#include "common/table_text.hpp"
#include "kernels/distance/prepare.hpp"
#include "kernels/distance/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/distmat/matrix.hpp"
#include "tools/distmat/nearest.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::distmat {
namespace {

using kernels::distance::Engine;
using kernels::distance::Metric;
using Clock = std::chrono::steady_clock;

/// Rows and columns of a block of a mapped output: 59 MB, and as much for its mirror. A multiple of
/// the engines' tiles.
constexpr std::size_t kBlockRows = 3840;
/// Memory of a strip: whole rows of distances.
constexpr std::size_t kStripBytes = std::size_t{64} << 20;
constexpr std::size_t kStripRows = 192;  // whole tiles
/// Bytes of distances that a thread prints or ranks at a time.
constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
/// Maximum of characters of a distance or similarity: «-1.17549435e-38».
constexpr std::size_t kMaxNumberBytes = 16;
/// With more rows, distances and header would exceed 2^63 bytes.
constexpr std::size_t kMaxRows = 1'500'000'000;
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
constexpr ProgressUnit kDistances = {"M distances", 1'000'000};

std::string_view name_of(const DistmatOptions& options) {
    if (options.is_similarity) return "similarity";
    switch (options.metric) {
        case Metric::sqeuclidean:
            break;
        case Metric::euclidean:
            return "euclidean";
        case Metric::cosine:
            return "cosine";
    }
    return "sqeuclidean";
}

RowStyle style_of(const DistmatOptions& options) {
    if (options.format == Format::csv) return kCsv;
    if (options.format == Format::tsv) return kTsv;
    return options.top == 0 ? kBlankLines : kTabLines;
}

void append_number(std::string& text, float number) {
    char digits[kMaxNumberBytes];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

/// Runs the engine and writes the distances.
class Writer {
  public:
    Writer(const DistmatOptions& options, const Matrix& matrix, Engine& engine, OutputFile& output,
           const std::atomic<bool>& stop)
        : options_(options),
          style_(style_of(options)),
          matrix_(matrix),
          rows_(matrix.rows()),
          engine_(engine),
          output_(output),
          stop_(stop) {
        const auto& in_model = matrix.model_rows();
        for (std::size_t row = 0; row < in_model.size(); ++row)
            if (in_model[row] == format::kNoRow) missing_.push_back(row);
    }

    Status write() {
        if (options_.top != 0) return write_nearest();
        if (is_npy()) return write_array();
        return write_text();
    }

    double computing_ms() const { return computing_ms_; }
    /// Neighbours of a row that are written.
    std::size_t nearest_count() const {
        return std::min(options_.top, rows_ - missing_.size() - 1);
    }

  private:
    bool is_npy() const { return options_.format == Format::npy; }
    std::string_view name_of_rows() const { return matrix_.words().empty() ? "row" : "word"; }
    std::string_view name_of_values() const {
        return options_.is_similarity ? "similarity" : "distance";
    }

    /// Appends the cell of a row's word or number, and the separator.
    void append_name(std::string& text, std::size_t row) const {
        const auto& words = matrix_.words();
        if (words.empty()) {
            text += fmt::format_int(row).c_str();
        } else {
            append_cell(text, words[row], style_);
        }
        text += style_.separator;
    }

    /// Computes blocks on and above the diagonal, each with its mirror.
    Status write_array() {
        const std::size_t shape[] = {rows_, rows_};
        const std::string header = npy::make_header("<f4", shape);
        const auto mapped = output_.map(header.size() + rows_ * rows_ * sizeof(float));
        if (!mapped) return mapped.error();
        std::memcpy(mapped->data(), header.data(), header.size());
        auto* const out = reinterpret_cast<float*>(mapped->data() + header.size());
        const std::size_t block = options_.block != 0 ? options_.block : kBlockRows;
        const auto let_go = [&](std::size_t first, std::size_t count) {
            output_.drop_pages(header.size() + first * rows_ * sizeof(float),
                               count * rows_ * sizeof(float));
        };
        Progress progress("computing", rows_ * rows_, kDistances);
        std::uint64_t done = 0;
        for (std::size_t row = 0; row < rows_; row += block) {
            const std::size_t height = std::min(block, rows_ - row);
            for (std::size_t column = row; column < rows_; column += block) {
                if (stop_) return source::interrupted();
                const std::size_t width = std::min(block, rows_ - column);
                float* const corner = out + row * rows_ + column;
                float* const mirror = row == column ? nullptr : out + column * rows_ + row;
                Status ran = run({row, height, column, width}, corner, rows_, mirror, rows_);
                if (!ran) return ran;
                let_go(row, height);
                if (mirror != nullptr) let_go(column, width);
                done += height * width * (mirror != nullptr ? 2 : 1);
                progress.update(done);
            }
        }
        return {};
    }

    Status write_text() {
        if (style_.is_table) {
            std::string headings(name_of_rows());
            headings += style_.separator;
            for (std::size_t row = 0; row < rows_; ++row) append_name(headings, row);
            headings.back() = '\n';
            if (Status written = output_.write(headings); !written) return written;
        }
        return for_each_row([&](std::size_t number, std::span<const float> row, std::string& text,
                                std::vector<Neighbour>&) {
            if (style_.is_table) append_name(text, number);
            const std::size_t before = text.size();
            text.resize(before + row.size() * (kMaxNumberBytes + 1));
            char* at = text.data() + before;
            for (const float distance : row) {
                if (!style_.is_table || !std::isnan(distance))
                    at = std::to_chars(at, at + kMaxNumberBytes, distance).ptr;
                *at++ = style_.separator;
            }
            at[-1] = '\n';
            text.resize(static_cast<std::size_t>(at - text.data()));
        });
    }

    Status write_nearest() {
        const std::size_t count = nearest_count();
        if (is_npy()) {
            const std::size_t shape[] = {rows_, count};
            const std::string header = npy::make_header(
                fmt::format("[('index', '<i8'), ('{}', '<f4')]", name_of_values()), shape);
            if (Status written = output_.write(header); !written) return written;
        }
        if (style_.is_table) {
            std::string headings;
            append_row(headings, {name_of_rows(), "neighbour", name_of_values()}, style_);
            if (Status written = output_.write(headings); !written) return written;
        }
        return for_each_row([&](std::size_t row, std::span<const float> distances,
                                std::string& text, std::vector<Neighbour>& nearest) {
            if (std::ranges::binary_search(missing_, row)) {
                nearest.assign(is_npy() ? count : 0, {-1, kNoNumber});
                if (style_.is_table) {
                    append_name(text, row);
                    text.append({style_.separator, '\n'});
                }
            } else {
                find_nearest(distances, row, count, nearest);
            }
            for (const auto& [index, distance] : nearest) {
                const float value = options_.is_similarity ? 1 - distance : distance;
                if (is_npy()) {
                    text.append(reinterpret_cast<const char*>(&index), sizeof index);
                    text.append(reinterpret_cast<const char*>(&value), sizeof value);
                    continue;
                }
                append_name(text, row);
                append_name(text, static_cast<std::size_t>(index));
                append_number(text, value);
                text += '\n';
            }
        });
    }

    /// Calls `append(row, its distances, text, scratch list)` for each row and writes the texts in
    /// order. Computes strips of whole rows, so both directions of a pair: printing or ranking a
    /// distance takes longer than computing it.
    template <class Append>
    Status for_each_row(Append append) {
        std::size_t height = std::max<std::size_t>(1, kStripBytes / sizeof(float) / rows_);
        if (height > kStripRows) height = height / kStripRows * kStripRows;
        height = std::min(options_.block != 0 ? options_.block : height, rows_);
        std::vector<float> strip(height * rows_);
        const std::size_t piece_rows =
            std::max<std::size_t>(1, kPieceBytes / sizeof(float) / rows_);
        struct Piece {
            std::size_t first = 0;  // in the strip
            std::size_t last = 0;
            std::string text;
            std::vector<Neighbour> nearest;
        };
        Progress progress("computing", rows_ * rows_, kDistances);
        for (std::size_t row = 0; row < rows_; row += height) {
            const std::size_t end = std::min(row + height, rows_);
            if (Status ran = run({row, end - row, 0, rows_}, strip.data(), rows_, nullptr, 0); !ran)
                return ran;
            const auto produce = source::pieces_of(end - row, piece_rows, stop_);
            const auto fill = [&](Piece& piece) {
                piece.text.clear();
                for (std::size_t i = piece.first; i < piece.last; ++i) {
                    append(row + i, std::span(strip).subspan(i * rows_, rows_), piece.text,
                           piece.nearest);
                }
            };
            const auto write = [&](Piece& piece) -> Status {
                progress.update((row + piece.last) * rows_);
                return output_.write(piece.text);
            };
            Status done = source::run_ordered<Piece>(options_.threads, produce, fill, write);
            if (!done) return done;
        }
        return {};
    }

    Status run(const kernels::distance::Rectangle& rectangle, float* out, std::size_t stride,
               float* mirror, std::size_t mirror_stride) {
        const auto begun = Clock::now();
        Status done = engine_.run(rectangle, out, stride, mirror, mirror_stride);
        if (options_.is_similarity && options_.top == 0) {
            make_similarities(out, rectangle.rows, rectangle.columns, stride);
            if (mirror != nullptr)
                make_similarities(mirror, rectangle.columns, rectangle.rows, mirror_stride);
        }
        for (const std::size_t row : missing_)
            blank(row, rectangle, out, stride, mirror, mirror_stride);
        computing_ms_ += ms_since(begun);
        return done;
    }

    /// Overwrites what the engine computed for a word that the model does not have. Where the
    /// nearest are looked for, it is farther than all others.
    void blank(std::size_t row, const kernels::distance::Rectangle& rectangle, float* out,
               std::size_t stride, float* mirror, std::size_t mirror_stride) const {
        const float value = options_.top == 0 ? kNoNumber : std::numeric_limits<float>::infinity();
        const auto set = [&](std::size_t i, std::size_t j) {
            out[i * stride + j] = value;
            if (mirror != nullptr) mirror[j * mirror_stride + i] = value;
        };
        // Smaller ones wrap round to huge numbers.
        const std::size_t i = row - rectangle.first_row;
        for (std::size_t j = 0; i < rectangle.rows && j < rectangle.columns; ++j) set(i, j);
        const std::size_t j = row - rectangle.first_column;
        for (std::size_t k = 0; j < rectangle.columns && k < rectangle.rows; ++k) set(k, j);
    }

    /// Replaces cosine distances by cosines. Engines know distances alone, which lose nothing for
    /// near rows; so every engine gives the same bits here too.
    static void make_similarities(float* out, std::size_t rows, std::size_t columns,
                                  std::size_t stride) {
        for (std::size_t row = 0; row < rows; ++row, out += stride)
            for (std::size_t column = 0; column < columns; ++column) out[column] = 1 - out[column];
    }

    const DistmatOptions& options_;
    const RowStyle style_;
    const Matrix& matrix_;
    std::size_t rows_;
    Engine& engine_;
    OutputFile& output_;
    const std::atomic<bool>& stop_;
    double computing_ms_ = 0;
    std::vector<std::size_t> missing_;  // words that the model does not have, ascending
};

Result<Matrix> read(const DistmatOptions& options, const std::atomic<bool>& stop) {
    if (options.model_dir.empty()) {
        return read_matrix(options.input, {.threads = options.threads, .member = options.member},
                           stop);
    }
    const auto model = format::Model::open(options.model_dir);
    if (!model) return model.error();
    auto matrix = read_words(options.input, *model, options.word_rules, stop, options.member);
    if (!matrix) return matrix;
    if (Status whole = model->verify_sizes(); !whole) return whole.error();
    return matrix;
}

}  // namespace

Format format_of(std::string_view path) {
    if (path.ends_with(".npy")) return Format::npy;
    return path.ends_with(".csv") ? Format::csv : Format::text;
}

Status distmat(const DistmatOptions& options, const std::atomic<bool>& stop,
               const std::function<void(const std::string&)>& say) {
    const auto begun = Clock::now();
    // First: its errors should not come after a long read.
    auto output = OutputFile::create(options.output, stop);
    if (!output) return output.error();
    if (options.format == Format::text) {
        const std::string note = describe_wrong_name(options.output, style_of(options).separator);
        if (!note.empty()) say(note);
    }
    const auto reading_begun = Clock::now();
    auto matrix = read(options, stop);
    if (!matrix) return matrix.error();
    const double reading_ms = ms_since(reading_begun);
    const std::size_t rows = matrix->rows();
    if (rows > kMaxRows) {
        const auto many = static_cast<double>(rows);
        return bad_source(
            "{}: all distances of {} rows would take {:.1f} EB, more than a file can "
            "hold; take fewer rows",
            options.input, rows, many * many * sizeof(float) / 1e18);
    }
    const auto preparing_begun = Clock::now();
    std::optional<kernels::distance::Points> points;
    std::unique_ptr<Engine> engine;
    {
        kernels::ThreadPool pool(static_cast<unsigned>(options.threads));
        auto prepared =
            kernels::distance::prepare(pool, matrix->values(), rows, matrix->dim(), options.metric,
                                       [&](std::size_t row) { return matrix->row_name(row); });
        if (!prepared) return prepared.error();
        points = *std::move(prepared);
        auto made = kernels::distance::make_distance_engine(options.engine, points->view,
                                                            options.metric, options.engine_options);
        if (!made) return made.error();
        engine = *std::move(made);
    }
    const double preparing_ms = ms_since(preparing_begun);
    if (stop) return source::interrupted();
    const auto writing_begun = Clock::now();
    Writer writer(options, *matrix, *engine, *output, stop);
    if (Status written = writer.write(); !written) return written;
    if (Status whole = matrix->verify_size(); !whole) return whole;
    if (Status synced = output->sync(); !synced) return synced;
    if (stop) return source::interrupted();
    if (Status published = output->publish(); !published) return published;
    const double writing_ms = ms_since(writing_begun);
    const double seconds = seconds_since(begun);
    const std::string what = options.top == 0
                                 ? options.is_similarity ? "all similarities" : "all distances"
                                 : fmt::format("the {} nearest", writer.nearest_count());
    say(fmt::format("{}: {} of {} rows of {} numbers, {}, {} bytes; {}; {:.1f} s", options.output,
                    what, rows, matrix->dim(), name_of(options), output->bytes(),
                    engine->description(), seconds));
    if (options.times) {
        say(fmt::format(
            "reading {:.1f} ms, preparing {:.1f} ms, computing {:.1f} ms, writing {:.1f} ms",
            reading_ms, preparing_ms, writer.computing_ms(), writing_ms - writer.computing_ms()));
    }
    return {};
}

}  // namespace gloved::distmat
