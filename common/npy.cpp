#include "common/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved::npy {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxDimensions = 64;  // NumPy's own

struct TypeName {
    std::string_view descr;
    Type type;
    std::size_t bytes;
};
constexpr TypeName kTypes[] = {
    {"<f4", Type::float32, 4}, {"<f8", Type::float64, 8}, {"<i4", Type::int32, 4}};

/// Parses the Python literals of a header. Each function leaves the text after what it parsed.
class Literals {
  public:
    explicit Literals(std::string_view text) : rest_(text) {}

    void skip_blanks() {
        while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
            rest_.remove_prefix(1);
    }
    bool take(char c) {
        skip_blanks();
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool take_word(std::string_view word) {
        skip_blanks();
        if (rest_.substr(0, word.size()) != word) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    /// A string in single or double quotes, without escapes.
    std::optional<std::string> quoted() {
        skip_blanks();
        if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
        const std::size_t end = rest_.find(rest_.front(), 1);
        if (end == std::string_view::npos) return std::nullopt;
        std::string text(rest_.substr(1, end - 1));
        rest_.remove_prefix(end + 1);
        return text;
    }
    /// A list of anything, as written.
    std::optional<std::string> list() {
        skip_blanks();
        if (rest_.empty() || rest_.front() != '[') return std::nullopt;
        std::size_t depth = 0;
        for (std::size_t i = 0; i < rest_.size(); ++i) {
            if (rest_[i] == '[') ++depth;
            if (rest_[i] == ']' && --depth == 0) {
                std::string text(rest_.substr(0, i + 1));
                rest_.remove_prefix(i + 1);
                return text;
            }
        }
        return std::nullopt;
    }
    std::optional<bool> boolean() {
        if (take_word("True")) return true;
        if (take_word("False")) return false;
        return std::nullopt;
    }
    /// «(3, 4)», «(3,)», «()».
    std::optional<std::vector<std::size_t>> sizes() {
        std::vector<std::size_t> values;
        if (!take('(')) return std::nullopt;
        while (!take(')')) {
            const auto value = size();
            if (!value || values.size() == kMaxDimensions) return std::nullopt;
            values.push_back(*value);
            if (!take(',')) {
                if (!take(')')) return std::nullopt;
                break;
            }
        }
        return values;
    }
    bool at_end() {
        skip_blanks();
        return rest_.empty();
    }

  private:
    std::optional<std::size_t> size() {
        skip_blanks();
        std::size_t value = 0;
        std::size_t digits = 0;
        for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
            if (__builtin_mul_overflow(value, std::size_t{10}, &value) ||
                __builtin_add_overflow(value, static_cast<std::size_t>(rest_[digits] - '0'),
                                       &value)) {
                return std::nullopt;
            }
        }
        if (digits == 0) return std::nullopt;
        rest_.remove_prefix(digits);
        return value;
    }

    std::string_view rest_;
};

struct Fields {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::size_t>> shape;
};

/// Nothing if it is not a dictionary of these three keys.
std::optional<Fields> read_fields(std::string_view text) {
    Literals literals(text);
    Fields fields;
    if (!literals.take('{')) return std::nullopt;
    while (!literals.take('}')) {
        const auto key = literals.quoted();
        if (!key || !literals.take(':')) return std::nullopt;
        if (*key == "descr") {
            fields.descr = literals.list();
            if (!fields.descr) fields.descr = literals.quoted();
            if (!fields.descr) return std::nullopt;
        } else if (*key == "fortran_order") {
            if (!(fields.fortran_order = literals.boolean())) return std::nullopt;
        } else if (*key == "shape") {
            if (!(fields.shape = literals.sizes())) return std::nullopt;
        } else {
            return std::nullopt;
        }
        if (!literals.take(',')) {
            if (!literals.take('}')) return std::nullopt;
            break;
        }
    }
    if (!literals.at_end() || !fields.descr || !fields.fortran_order || !fields.shape)
        return std::nullopt;
    return fields;
}

/// The product, or nothing if it overflows.
std::optional<std::size_t> bytes_of(std::span<const std::size_t> shape, std::size_t element_bytes) {
    // A size of 0 makes the array empty, whatever the other sizes are.
    if (std::ranges::find(shape, std::size_t{0}) != shape.end()) return 0;
    std::size_t bytes = element_bytes;
    for (const std::size_t size : shape) {
        if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
    }
    return bytes;
}

}  // namespace

bool is_npy(std::string_view prefix) { return prefix.substr(0, kMagic.size()) == kMagic; }

Result<Header> parse_header(std::string_view prefix, const std::string& path) {
    const auto damaged = [&](std::string_view what) {
        return gloved::damaged("{}{}not a readable .npy file: {}; write it again with numpy.save",
                               path, path.empty() ? "" : ": ", what);
    };
    if (!is_npy(prefix)) return damaged("it does not start with the magic bytes of one");
    if (prefix.size() < kMagic.size() + 2) return damaged("it ends within its header");
    const auto byte = [&](std::size_t at) {
        return static_cast<std::size_t>(static_cast<unsigned char>(prefix[at]));
    };
    const std::size_t version = byte(kMagic.size());
    if (version < 1 || version > 3)
        return damaged(fmt::format("its version is {}, not 1 to 3", version));
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    const std::size_t begin = kMagic.size() + 2 + length_bytes;
    if (prefix.size() < begin) return damaged("it ends within its header");
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(kMagic.size() + 2 + i) << (8 * i);
    if (length > kMaxHeaderBytes - begin) {
        return damaged(fmt::format("its header has {} bytes, more than the {} allowed", length,
                                   kMaxHeaderBytes - begin));
    }
    if (prefix.size() - begin < length) return damaged("it ends within its header");
    auto fields = read_fields(prefix.substr(begin, length));
    if (!fields) {
        constexpr std::size_t kShownBytes = 200;
        return damaged(fmt::format("its header is {}, not descr, fortran_order and shape",
                                   printable(prefix.substr(begin, length), kShownBytes)));
    }
    Header header;
    header.data_offset = begin + length;
    header.fortran_order = *fields->fortran_order && fields->shape->size() > 1;
    for (const TypeName& type : kTypes) {
        if (type.descr != *fields->descr) continue;
        header.type = type.type;
        const auto bytes = bytes_of(*fields->shape, type.bytes);
        if (!bytes) return damaged("no array can have as many elements as its shape says");
        header.data_bytes = *bytes;
    }
    header.descr = *std::move(fields->descr);
    header.shape = *std::move(fields->shape);
    return header;
}

Status check_plain(const Header& header, const std::string& path) {
    if (header.fortran_order) {
        return error_with(ErrorCode::unsupported,
                          "{}: its array is in Fortran order (column by column); write it again "
                          "with numpy.save(path, numpy.ascontiguousarray(array))",
                          path);
    }
    if (header.descr.starts_with('>')) {
        return error_with(ErrorCode::unsupported,
                          "{}: its numbers ({}) are big-endian; write it again with "
                          "numpy.save(path, array.astype(array.dtype.newbyteorder('<')))",
                          path, printable(header.descr));
    }
    return {};
}

std::string make_header(std::string_view descr, std::span<const std::size_t> shape) {
    const bool list = !descr.empty() && descr.front() == '[';
    std::string header =
        fmt::format("{{'descr': {0}{1}{0}, 'fortran_order': False, 'shape': ({2}{3}), }}",
                    list ? "" : "'", descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
    constexpr std::size_t kBeforeHeader = 10;
    while ((kBeforeHeader + header.size() + 1) % kAlignment != 0) header += ' ';
    header += '\n';
    std::string text(kMagic);
    text += {1, 0, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
    return text + header;
}

}  // namespace gloved::npy
