#include "tools/convert/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control_groups.hpp"
#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/ranks.hpp"
#include "common/npy.hpp"
#include "common/output_file.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "tools/source/line.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

using format::Model;
using format::Row;
using Say = std::function<void(const std::string&)>;

constexpr unsigned kMaxThreads = 8;           // more would wait for the thread that writes
constexpr std::size_t kBlockBytes = 1 << 20;  // of values; three to four times that as decimals
constexpr std::size_t kShownKeys = 3;
constexpr const char* kWordsSuffix = ".words";
/// «-1.17549435e-38»: std::to_chars takes the shorter of two notations, and 9 digits tell any
/// float32 from its neighbours.
constexpr std::size_t kMaxNumberBytes = 16;

/// Whether the words go to a file of their own.
bool is_array(ExportFormat format) {
    return format == ExportFormat::npy || format == ExportFormat::safetensors;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_sequence_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

/// Whether parse_line reads the key back. It leaves out blanks around a key.
bool reads_back(std::string_view key) {
    if (key.find(' ') == std::string_view::npos) return true;
    const std::string line = std::string(key) + " 0";
    std::string_view read;
    float value = 0;
    return !source::parse_line(line, 1, read, &value, true) && read == key;
}

/// Counts keys of a kind and lists the first few by rank.
struct KeyGroup {
    std::uint64_t count = 0;
    std::string examples;

    void add(std::string_view key) {
        if (count++ < kShownKeys) examples += (examples.empty() ? "" : ", ") + printable(key, 40);
    }
    /// «3 keys hold blanks ("a b", …): why»
    void tell(const Say& say, std::string_view what, std::string_view why) const {
        if (count == 0) return;
        say(fmt::format("note: {} key{} {} ({}{}): {}", count, count == 1 ? "" : "s", what,
                        examples, count > kShownKeys ? ", …" : "", why));
    }
};

Status tell_hard_keys(const Model& model, std::span<const Row> by_rank, ExportFormat format,
                      const std::atomic<bool>& stop, const Say& say) {
    KeyGroup blanks;
    KeyGroup outer;
    KeyGroup invalid;
    for (const Row row : by_rank) {
        if (stop) return source::interrupted();
        const std::string_view key = model.key(row);
        if (key.find(' ') != std::string_view::npos) blanks.add(key);
        if (!reads_back(key)) outer.add(key);
        if (!is_utf8(key)) invalid.add(key);
    }
    const bool text = format == ExportFormat::glove || format == ExportFormat::word2vec;
    if (!is_array(format)) {
        blanks.tell(
            say, "with blanks",
            text ? "gensim and others that split lines at blanks cannot load the file; "
                   "gloved-convert can, with --dim"
                 : "gensim and others that end a key at the first blank cannot load the file");
    }
    if (text) {
        outer.tell(say, "beginning or ending in a blank",
                   "text cannot keep these blanks, word2vec-bin can");
    }
    invalid.tell(say, "with invalid UTF-8",
                 is_array(format) ? "read the words as bytes, or with errors='surrogateescape'"
                                  : "gensim needs unicode_errors='replace', and changes them");
    return {};
}

/// Writes every row in the order of their ranks. Several threads call `append(std::string&, row)`,
/// each with a text of its own.
template <class Append>
Status write_rows(const Model& model, std::span<const Row> by_rank, OutputFile& output,
                  Progress& progress, const std::atomic<bool>& stop, Append append) {
    const std::size_t row_bytes = model.dim() * sizeof(float);
    const std::size_t block_rows = std::max<std::size_t>(1, kBlockBytes / row_bytes);
    struct Block {
        std::size_t first = 0;  // rank
        std::size_t last = 0;
        std::string text;
    };
    const auto produce = source::pieces_of(by_rank.size(), block_rows, stop);
    const auto fill = [&](Block& block) {
        block.text.clear();
        for (std::size_t rank = block.first; rank < block.last; ++rank)
            append(block.text, by_rank[rank]);
    };
    const auto write = [&](Block& block) -> Status {
        progress.update(block.last * row_bytes);
        return output.write(block.text);
    };
    const std::size_t threads = std::clamp(usable_processors(), 1U, kMaxThreads);
    return source::run_ordered<Block>(threads, produce, fill, write);
}

void append_decimals(std::string& text, std::string_view key, std::span<const float> vector) {
    const std::size_t before = text.size();
    text.resize(before + key.size() + vector.size() * (1 + kMaxNumberBytes) + 1);
    char* at = std::ranges::copy(key, text.data() + before).out;
    for (const float value : vector) {
        *at++ = ' ';
        at = std::to_chars(at, at + kMaxNumberBytes, value).ptr;
    }
    *at++ = '\n';
    text.resize(static_cast<std::size_t>(at - text.data()));
}

void append_bytes(std::string& text, std::span<const float> vector) {
    text.append(reinterpret_cast<const char*>(vector.data()), vector.size_bytes());
}

/// The header of a safetensors file: its size in 8 bytes, then JSON, with blanks behind it that
/// align the numbers.
std::string tensor_header(std::size_t rows, std::size_t dim) {
    std::string json =
        fmt::format(R"({{"embeddings":{{"dtype":"F32","shape":[{},{}],"data_offsets":[0,{}]}}}})",
                    rows, dim, rows * dim * sizeof(float));
    json.resize((json.size() + 7) / 8 * 8, ' ');
    const std::uint64_t bytes = json.size();
    return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + json;
}

/// The file's header: what comes before the rows.
std::string preamble(const Model& model, ExportFormat format) {
    switch (format) {
        case ExportFormat::glove:
            return {};
        case ExportFormat::word2vec:
        case ExportFormat::word2vec_bin:
            return fmt::format("{} {}\n", model.rows(), model.dim());
        case ExportFormat::safetensors:
            return tensor_header(model.rows(), model.dim());
        case ExportFormat::npy:
            break;
    }
    const std::size_t shape[] = {model.rows(), model.dim()};
    return npy::make_header("<f4", shape);
}

bool is_finite(std::span<const float> vector) {
    return std::ranges::all_of(vector, [](float value) { return std::isfinite(value); });
}

}  // namespace

Status export_model(const ExportOptions& options, const std::atomic<bool>& stop, const Say& say) {
    const auto begun = std::chrono::steady_clock::now();
    const bool array = is_array(options.format);
    if (array && options.output == "-") {
        return Error{ErrorCode::conflict,
                     "npy and safetensors make two files, OUT and OUT.words: name a file"};
    }
    const auto model = Model::open(options.model_dir, format::WithPlanes::no);
    if (!model) return model.error();
    auto output = OutputFile::create(options.output, stop);
    if (!output) return output.error();
    const auto by_rank = format::rows_by_rank(*model);
    if (!by_rank) return by_rank.error();
    if (Status told = tell_hard_keys(*model, *by_rank, options.format, stop, say); !told)
        return told;

    std::optional<OutputFile> words;
    if (array) {
        auto created = OutputFile::create(options.output + kWordsSuffix, stop);
        if (!created) return created.error();
        words.emplace(*std::move(created));
        Progress progress("writing words", model->vectors().size_bytes());
        const auto append = [&](std::string& text, Row row) { (text += model->key(row)) += '\n'; };
        if (Status written = write_rows(*model, *by_rank, *words, progress, stop, append); !written)
            return written;
        if (Status synced = words->sync(); !synced) return synced;
    }
    std::optional<Progress> progress(std::in_place, "writing", model->vectors().size_bytes());
    if (Status written = output->write(preamble(*model, options.format)); !written) return written;
    // A row with NaN or infinity, if there is any.
    constexpr auto kNone = std::numeric_limits<Row>::max();
    std::atomic<Row> not_finite{kNone};
    const auto append = [&](std::string& text, Row row) {
        const auto vector = model->vector(row);
        if (!is_finite(vector)) not_finite = row;
        if (array) return append_bytes(text, vector);
        if (options.format != ExportFormat::word2vec_bin)
            return append_decimals(text, model->key(row), vector);
        (text += model->key(row)) += ' ';
        append_bytes(text, vector);
        text += '\n';
    };
    if (Status written = write_rows(*model, *by_rank, *output, *progress, stop, append); !written)
        return written;
    if (const Row row = not_finite; row != kNone) {
        return error_with(
            ErrorCode::damaged,
            "{}/{}: row {} ({}) has a number that is not finite; gloved-verify tells more",
            model->path(), format::kValuesFile, row, printable(model->key(row)));
    }
    if (Status synced = output->sync(); !synced) return synced;
    progress.reset();  // wipes its line before another is written
    if (stop) return source::interrupted();
    if (words) {
        if (Status published = words->publish(); !published) return published;
    }
    if (Status published = output->publish(); !published) {
        if (!words) return published;
        return error_with(published.error().code,
                          "{}; {}{} is the new one already, and does not belong to an older {}: "
                          "export again",
                          published.error().message, options.output, kWordsSuffix, options.output);
    }
    const double seconds = seconds_since(begun);
    say(fmt::format("{}: {} words of {} numbers, {} bytes{}; {:.1f} s", options.output,
                    model->rows(), model->dim(), output->bytes(),
                    array ? fmt::format(", words in {}{}", options.output, kWordsSuffix) : "",
                    seconds));
    return {};
}

}  // namespace gloved::convert
