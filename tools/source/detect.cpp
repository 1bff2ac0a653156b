#include "tools/source/detect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/ascii.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/npy.hpp"
#include "common/number.hpp"
#include "common/quoting.hpp"
#include "common/text_lines.hpp"
#include "tools/source/archive_reader.hpp"
#include "tools/source/line.hpp"

namespace gloved::source {
namespace {

constexpr std::size_t kSampledLines = 64;
constexpr std::size_t kSampledBytes = 4096;
constexpr std::string_view kFormatNames[] = {"auto",         "glove",    "norms", "word2vec",
                                             "word2vec-bin", "fasttext", "npy",   "safetensors"};

struct Signature {
    std::string_view bytes;
    const char* what;
    const char* remedy;
};

using namespace std::string_view_literals;
constexpr const char* kWriteInR =
    "write text in R: write.table(x, quote = FALSE, col.names = FALSE)";
constexpr const char* kWriteRows =
    "write its rows as text first, a word and its numbers a line, separated by blanks";
constexpr Signature kSignatures[] = {
    {"7z\xBC\xAF"sv, "a 7z archive", "unpack it first"},
    {"\x04\x22\x4D\x18"sv, "lz4 data", "unpack it: lz4cat FILE | gloved-convert - MODEL_DIR"},
    {"Rar!"sv, "a RAR archive", "unpack it first"},
    {"\xBA\x16\x4F\x2F"sv, "a fastText model (.bin)",
     "fetch the .vec file of the same vectors, which is text"},
    {"SQLite format 3"sv, "an SQLite database, as .magnitude files are",
     "fetch the text file that it was made from"},
    {"PAR1"sv, "a Parquet file", kWriteRows},
    {"ARROW1"sv, "an Arrow file", kWriteRows},
    {"FEA1"sv, "a Feather file", kWriteRows},
    {"FiFu"sv, "a finalfusion file (.fifu)",
     "convert it: finalfusion convert -f finalfusion -t text FILE TEXT"},
    {"RDX2\n"sv, "R data (.rda)", kWriteInR},
    {"RDX3\n"sv, "R data (.rda)", kWriteInR},
    {"RDA2\n"sv, "R data (.rda)", kWriteInR},
    {"RDA3\n"sv, "R data (.rda)", kWriteInR},
    {"X\n\0\0\0"sv, "R data (.rds)", kWriteInR},
    // A pickle of the number 0x1950A86A20F9469CFC6C, as before PyTorch 1.6.
    {"\x80\x02\x8A\x0A\x6C\xFC\x9C\x46"sv,
     "a PyTorch file, a pickle, which could run any program and is not unpickled",
     "write text in Python, with a word before each row"},
    // A table whose first value, of the key "", is BundleHeaderProto: one shard, version 1.
    {"\0\0\x06\x08\x01\x1A\x02\x08\x01"sv, "a TensorFlow checkpoint (.index)",
     "write text in Python, with a word before each row"},
    {"\x89HDF"sv, "an HDF5 file", "fetch the text file"},
    {"%PDF-"sv, "a PDF document", "fetch the text file"},
    {"\x8EGLV"sv, "a gloved values file", "it is converted already"},
    {"version https://git-lfs"sv, "a Git LFS pointer, not the file that it stands for",
     "fetch that: git lfs pull"},
    {"\xFF\xFE\0\0"sv, "UTF-32 text",
     "convert it: iconv -f UTF-32 -t UTF-8 FILE | gloved-convert - MODEL_DIR"},
    {"\0\0\xFE\xFF"sv, "UTF-32 text",
     "convert it: iconv -f UTF-32 -t UTF-8 FILE | gloved-convert - MODEL_DIR"},
    {"\xFF\xFE"sv, "UTF-16 text",
     "convert it: iconv -f UTF-16 -t UTF-8 FILE | gloved-convert - MODEL_DIR"},
    {"\xFE\xFF"sv, "UTF-16 text",
     "convert it: iconv -f UTF-16 -t UTF-8 FILE | gloved-convert - MODEL_DIR"},
};

/// A pickle of protocol 2 to 5: gensim's .kv and .model, and PyTorch's older .pt.
bool looks_like_pickle(std::string_view text) {
    return text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

/// A protobuf that begins with a piece: its word, a score in float32, and its type. The first piece
/// is mostly <unk>.
bool looks_like_sentencepiece(std::string_view text) {
    constexpr std::size_t kWordAt = 4;
    constexpr std::size_t kScoreBytes = 1 + sizeof(float);
    if (text.size() <= kWordAt || text[0] != '\n' || text[2] != '\n') return false;
    const auto piece_bytes = static_cast<unsigned char>(text[1]);
    const auto word_bytes = static_cast<unsigned char>(text[3]);
    const std::size_t score_at = kWordAt + word_bytes;
    return text.size() > score_at + kScoreBytes && text[score_at] == '\x15' &&
           text[score_at + kScoreBytes] == '\x18' &&
           piece_bytes == 2 + word_bytes + kScoreBytes + 2;
}

/// float64 of usual size, without a header: what GloVe's trainer writes with -binary 1.
bool looks_like_doubles(std::string_view text) {
    constexpr std::size_t kSampled = 32;
    if (text.size() < kSampled * sizeof(double)) return false;
    for (std::size_t i = 0; i < kSampled; ++i) {
        double value = 0;
        std::memcpy(&value, text.data() + i * sizeof value, sizeof value);
        if (!(std::abs(value) > 1e-9 && std::abs(value) < 1e3)) return false;
    }
    return true;
}

bool looks_like_html(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
    const std::string head = ascii_lower_case(text.substr(0, 9));
    return head == "<!doctype" || head.starts_with("<html>") || head.starts_with("<html ") ||
           head.starts_with("<?xml");
}

/// Recognizes content of other formats; returns what it is and what to do.
std::optional<std::string> unsupported_content(std::string_view text, std::string_view packing) {
    if (text.empty())
        return "the source is empty: nothing was downloaded, or the command before the pipe failed";
    const Packing* const inner = packing_of(text);
    if (inner != nullptr && packing != "none") {
        return fmt::format(
            "this is {} inside {}; unpack one layer: {} | gloved-convert - MODEL_DIR", inner->name,
            packing, unpacker_of(packing));
    }
    for (const Signature& signature : kSignatures) {
        if (text.starts_with(signature.bytes)) {
            return fmt::format("this is {}, not GloVe text; {}", signature.what, signature.remedy);
        }
    }
    if (looks_like_pickle(text)) {
        return "this is a Python pickle, as gensim's .kv and .model files are; it is not "
               "unpickled, "
               "which could run any program; write text in Python: "
               "kv.save_word2vec_format(\"vectors.txt\") (of a .model: model.wv instead of kv)";
    }
    if (looks_like_sentencepiece(text)) {
        return "this is a SentencePiece model, which holds words and no vectors; fetch the text "
               "file of the vectors";
    }
    if (looks_like_doubles(text)) {
        return "this is float64 without a word, as the vectors.bin of GloVe's trainer; take the "
               "vectors.txt beside it, or train with -binary 0";
    }
    if (looks_like_html(text)) {
        return "this is an HTML or XML page, not GloVe text: an error page of the download's "
               "server, most likely; fetch the download again";
    }
    return std::nullopt;
}

/// The first lines. A last line without newline counts only if the text ends there.
std::vector<std::string_view> first_lines(std::string_view text, bool whole) {
    std::vector<std::string_view> lines;
    for (std::size_t at = 0; at < text.size() && lines.size() < kSampledLines;) {
        std::size_t end = text.find('\n', at);
        if (end == std::string_view::npos) {
            if (!whole) break;
            end = text.size();
        }
        lines.push_back(trim_line_end(text.substr(at, end - at)));
        at = end + 1;
    }
    return lines;
}

bool has_nul_near_start(std::string_view text) {
    return text.substr(0, 512).find('\0') != std::string_view::npos;
}

bool is_number(std::string_view text) {
    const auto number = parse_number<float>(text.data(), text.data() + text.size());
    return number.fault == NumberFault::none && number.end == text.data() + text.size();
}

struct SizeHeader {
    std::uint64_t rows = 0;
    std::uint64_t dim = 0;
};

/// Parses a header line like «400000 300».
std::optional<SizeHeader> size_header(std::string_view line) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    const auto integer = [](std::string_view text, std::uint64_t& value) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size();
    };
    SizeHeader header;
    if (!integer(line.substr(0, blank), header.rows)) return std::nullopt;
    if (!integer(line.substr(blank + 1), header.dim)) return std::nullopt;
    return header;
}

/// Whether line 1 is a header rather than a word and a number: it has two integers, and line 2 is
/// no such pair. A single line is taken for a header, unless `dim` is 1.
bool starts_with_header(std::string_view text, const std::vector<std::string_view>& lines,
                        std::size_t dim) {
    if (lines.empty() || !size_header(lines[0])) return false;
    // Binary data, whose line 2 may look like a word and a number.
    if (text.substr(0, kSampledBytes).find('\0') != std::string_view::npos) return true;
    if (lines.size() == 1) return dim != 1;
    // A «line» of binary data may have two fields by chance: then the second is not a number.
    return count_fields(lines[1]) != 2 || !is_number(lines[1].substr(lines[1].find(' ') + 1));
}

/// Whether the content after a header is text. One line of that width proves it. If no line parses,
/// control bytes mean binary data: 4 KiB of float32 always have some.
bool body_is_text(std::string_view body, bool whole, std::size_t dim) {
    std::vector<float> values(dim);
    std::string_view key;
    const auto lines = first_lines(body, whole);
    const auto reads = [&](std::string_view line) {
        return !parse_line(line, dim, key, values.data());
    };
    if (body.empty() || std::ranges::any_of(lines, reads)) return true;
    const std::string_view sample = body.substr(0, kSampledBytes);
    const auto control = [](unsigned char c) {
        return c < 0x20 && c != '\t' && c != '\n' && c != '\r';
    };
    if (std::ranges::any_of(sample, control) || lines.empty()) return false;
    const std::string_view line = lines[0];
    return line.find(' ') == std::string_view::npos || is_number(line.substr(line.rfind(' ') + 1));
}

/// Whether at least half of the sampled lines with exactly `dim + 1` fields parse as a word and
/// `dim` numbers.
bool most_lines_parse(const std::vector<std::string_view>& lines, std::size_t dim) {
    std::vector<float> values(dim);
    std::string_view key;
    std::ptrdiff_t balance = 0;
    for (const std::string_view line : lines) {
        if (count_fields(line) == dim + 1)
            balance += parse_line(line, dim, key, values.data()) ? -1 : 1;
    }
    return balance >= 0;
}

/// Guesses how many numbers a line has. Most lines have one field more; lines whose words hold
/// blanks have more fields, cut lines fewer. Tries widths by frequency (of equally frequent ones
/// the larger first) and takes the first that most lines confirm. If none is confirmed, returns the
/// most frequent: the parser then names the wrong line. 0 if no line has two fields.
std::size_t guess_dim(const std::vector<std::string_view>& lines) {
    std::map<std::size_t, std::size_t> frequency;
    for (const std::string_view line : lines) {
        const std::size_t fields = count_fields(line);
        if (fields >= 2 && fields <= format::kMaxDim + 1) ++frequency[fields - 1];
    }
    std::vector<std::pair<std::size_t, std::size_t>> widths;
    widths.reserve(frequency.size());
    for (const auto& [width, count] : frequency) widths.emplace_back(count, width);
    std::ranges::sort(widths, std::ranges::greater());
    for (const auto& [count, width] : widths) {
        if (most_lines_parse(lines, width)) return width;
    }
    return widths.empty() ? 0 : widths.front().second;
}

/// Whether in all sampled lines of `dim` numbers the first is the norm of the others. Needs two
/// lines that are not all zeros.
bool first_numbers_are_norms(const std::vector<std::string_view>& lines, std::size_t dim) {
    if (dim < 3) return false;
    std::vector<float> values(dim);
    std::string_view key;
    std::size_t proofs = 0;
    for (const std::string_view line : lines) {
        if (parse_line(line, dim, key, values.data())) continue;
        if (parse_line_with_norm(line, dim - 1, key, values.data())) return false;
        if (std::any_of(values.begin(), values.end() - 1, [](float value) { return value != 0; }))
            ++proofs;
    }
    return proofs >= 2;
}

/// Data with NUL bytes near its beginning.
Error binary_data(std::string_view text) {
    // In text of UTF-16 most characters have a NUL, all on the same side.
    std::array<std::size_t, 2> nuls{};
    const std::string_view sample = text.substr(0, 512);
    for (std::size_t i = 0; i < sample.size(); ++i) {
        if (sample[i] == '\0') ++nuls[i % 2];
    }
    const std::size_t most = 2 * sample.size() / 5;
    if ((nuls[0] > most && nuls[1] == 0) || (nuls[1] > most && nuls[0] == 0)) {
        return bad_source(
            "this is UTF-16 text without its mark, not GloVe text; convert it: iconv "
            "-f UTF-16{} -t UTF-8 FILE | gloved-convert - MODEL_DIR",
            nuls[0] == 0 ? "LE" : "BE");
    }
    return bad_source(
        "this is binary data of no format that is known here (there are NUL bytes near its "
        "beginning); fetch the text file");
}

Error no_numbers(const std::vector<std::string_view>& lines, std::size_t offset) {
    if (lines.empty()) {
        return bad_source(
            "line 1 (byte {}): no line end within {} MiB; this is not GloVe text, "
            "fetch the text file",
            offset, kHeadBytes >> 20);
    }
    const std::size_t tab = lines[0].find('\t');
    const char* remedy = "this is not GloVe text, fetch the text file";
    if (tab != std::string_view::npos) {
        remedy = is_number(lines[0].substr(0, tab))
                     ? "it is separated by TABs and has no words, as TensorFlow's projector writes "
                       "it: put the words before its lines first (paste WORDS FILE | tr '\\t' ' ')"
                     : "it is separated by TABs: replace them with blanks first (tr '\\t' ' ')";
    }
    return bad_source(
        "line 1 (byte {}): no numbers behind a blank in the first {} line{}; line 1 starts with "
        "{}; {}",
        offset, lines.size(), lines.size() == 1 ? "" : "s", printable(lines[0], 40), remedy);
}

/// Whether a word and `dim` numbers are read from the lines, and at most half of the words end in a
/// number: of more numbers a line, all would.
bool most_lines_have(const std::vector<std::string_view>& lines, std::size_t dim) {
    std::vector<float> values(dim);
    std::string_view key;
    std::size_t read = 0;
    std::size_t wide = 0;
    for (const std::string_view line : lines) {
        if (parse_line(line, dim, key, values.data(), true)) continue;
        ++read;
        if (ends_in_number(key)) ++wide;
    }
    return read != 0 && 2 * wide <= read;
}

/// Detects format and dim of text without a header.
Status detect_plain(const std::vector<std::string_view>& lines, SourceFormat format,
                    Detected& detected) {
    const std::size_t given = detected.dim;
    const std::size_t width =
        format != SourceFormat::automatic && given != 0 ? 0 : guess_dim(lines);
    if (format == SourceFormat::automatic) {
        const bool possible = given == 0 || width == given + 1;
        format = possible && first_numbers_are_norms(lines, width) ? SourceFormat::norms
                                                                   : SourceFormat::glove;
    }
    detected.format = format;
    if (given != 0) return {};
    if (width == 0) return no_numbers(lines, detected.body_offset);
    detected.dim = width;
    if (format == SourceFormat::norms && --detected.dim == 0) {
        return bad_source(
            "line 1 (byte {}): the lines hold one number each; text with norms has a "
            "norm and a vector; --format glove takes it without",
            detected.body_offset);
    }
    return {};
}

/// Parses the header line.
Status detect_header(std::string_view head, const std::vector<std::string_view>& lines,
                     Detected& detected) {
    const auto header = lines.empty() ? std::nullopt : size_header(lines[0]);
    const std::string place = fmt::format("line 1 (byte {})", detected.body_offset);
    const std::string shown =
        printable(lines.empty() ? head.substr(detected.body_offset, 80) : lines[0], 40);
    if (!header) {
        return bad_source(
            "{}: {} is not a header «rows dim», with which this format starts; "
            "--format glove takes the first line as a word",
            place, shown);
    }
    if (header->dim < 1 || header->dim > format::kMaxDim) {
        return bad_source(
            "{}: the header {} gives {} numbers a word; 1 to {} can be taken; if this "
            "is no header, --format glove takes it as a word",
            place, shown, header->dim, format::kMaxDim);
    }
    if (detected.dim != 0 && detected.dim != header->dim) {
        return bad_source(
            "{}: the header {} gives {} numbers a word, --dim gives {}; leave --dim "
            "out, or if this is no header, --format glove takes it as a word",
            place, shown, header->dim, detected.dim);
    }
    detected.dim = header->dim;
    detected.header_rows = header->rows;
    detected.body_offset = std::min(head.find('\n', detected.body_offset), head.size() - 1) + 1;
    return {};
}

/// An error for a source that is or is not an array, while --format says otherwise.
Error other_format(SourceFormat given, SourceFormat found) {
    return bad_source("this is {}, and --format says {}; leave --format out",
                      found == SourceFormat::npy           ? "a NumPy array"
                      : found == SourceFormat::safetensors ? "a safetensors file"
                                                           : "neither .npy nor safetensors",
                      name_of(given));
}

Status detect_array(std::string_view head, const std::string& tensor, Detected& detected) {
    auto array = find_array(head, tensor);
    if (!array) return array.error();
    if (detected.dim != 0 && detected.dim != array->dim) {
        return bad_source("its rows have {} numbers, and --dim says {}; leave --dim out",
                          array->dim, detected.dim);
    }
    detected.dim = array->dim;
    detected.header_rows = array->rows;
    detected.layout = *std::move(array);
    return {};
}

}  // namespace

std::string_view name_of(SourceFormat format) {
    return kFormatNames[static_cast<std::size_t>(format)];
}

std::optional<SourceFormat> source_format_from(std::string_view name) {
    const auto found = std::find(std::begin(kFormatNames), std::end(kFormatNames), name);
    if (found == std::end(kFormatNames)) return std::nullopt;
    return static_cast<SourceFormat>(found - std::begin(kFormatNames));
}

Result<Detected> detect(std::string_view head, bool whole, SourceFormat format, std::size_t dim,
                        std::string_view packing, const std::string& tensor) {
    Detected detected;
    detected.dim = dim;
    detected.bom = head.starts_with(kByteOrderMark);
    if (detected.bom) detected.body_offset = kByteOrderMark.size();
    const std::string_view text = head.substr(detected.body_offset);
    if (const auto unsupported = unsupported_content(text, packing))
        return bad_source("{}", *unsupported);
    const auto found = npy::is_npy(head)      ? SourceFormat::npy
                       : is_safetensors(head) ? SourceFormat::safetensors
                                              : SourceFormat::automatic;
    if (found != SourceFormat::automatic || is_array(format)) {
        if (format != SourceFormat::automatic && format != found)
            return other_format(format, found);
        detected.format = found;
        if (Status done = detect_array(head, tensor, detected); !done) return done.error();
        return detected;
    }

    const auto lines = first_lines(text, whole);
    const bool plain = format == SourceFormat::glove || format == SourceFormat::norms ||
                       (format == SourceFormat::automatic && !starts_with_header(text, lines, dim));
    if (plain) {
        if (Status done = detect_plain(lines, format, detected); !done)
            return has_nul_near_start(text) ? binary_data(text) : done.error();
    } else {
        if (Status done = detect_header(head, lines, detected); !done) return done.error();
        if (format == SourceFormat::automatic) {
            const bool is_text =
                body_is_text(head.substr(detected.body_offset), whole, detected.dim);
            format = is_text ? SourceFormat::word2vec : SourceFormat::word2vec_bin;
        }
        detected.format = format;
    }
    if (detected.format == SourceFormat::word2vec_bin) {
        detected.layout.dim = detected.dim;
        return detected;
    }
    if (has_nul_near_start(text)) return binary_data(text);
    const auto body = plain ? lines : first_lines(head.substr(detected.body_offset), whole);
    const std::size_t width = detected.dim + (detected.format == SourceFormat::norms ? 1 : 0);
    const bool given = dim != 0 || detected.header_rows;
    detected.dim_is_certain = given && most_lines_have(body, width);
    return detected;
}

}  // namespace gloved::source
