// Any bytes as a matrix for gloved-distmat: text is read as a plain parser reads it, an array is
// the same mapped and from a stream, and what is accepted has distances.
//
//     byte 0    in which pieces it is read, by how many threads; 64: from a stream, too
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/distance/prepare.hpp"
#include "kernels/thread_pool.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/source_input.hpp"
#include "tests/support/gzip.hpp"
#include "tools/distmat/matrix.hpp"

using namespace gloved;
using kernels::distance::Metric;

namespace {

struct Plain {
    std::vector<double> values;
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::size_t fault_line = 0;  ///< from 1; 0: none
};

/// [+-] digits [. digits] [e [+-] digits], by hand.
bool looks_like_a_number(const std::string& token) {
    std::size_t i = 0;
    const auto digits = [&] {
        const std::size_t begin = i;
        while (i < token.size() && token[i] >= '0' && token[i] <= '9') ++i;
        return i - begin;
    };
    if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
    std::size_t count = digits();
    if (i < token.size() && token[i] == '.') {
        ++i;
        count += digits();
    }
    if (count == 0) return false;
    if (i < token.size() && (token[i] == 'e' || token[i] == 'E')) {
        ++i;
        if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
        if (digits() == 0) return false;
    }
    return i == token.size();
}

Plain parse_plainly(std::string_view text) {
    Plain plain;
    if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = text.find('\n');
        std::string_view rest = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
        std::size_t count = 0;
        for (;;) {
            const std::size_t begin = rest.find_first_not_of(" \t");
            if (begin == std::string_view::npos) break;
            const std::size_t stop = std::min(rest.find_first_of(" \t", begin), rest.size());
            const std::string token(rest.substr(begin, stop - begin));
            rest = rest.substr(stop);
            const double value =
                looks_like_a_number(token) ? std::strtod(token.c_str(), nullptr) : HUGE_VAL;
            if (std::isinf(value)) {
                plain.fault_line = line;
                return plain;
            }
            plain.values.push_back(value);
            ++count;
        }
        if (count == 0) continue;
        if (plain.rows != 0 && count != plain.dim) {
            plain.fault_line = line;
            return plain;
        }
        plain.dim = count;
        ++plain.rows;
    }
    return plain;
}

bool same_bits(std::span<const double> a, std::span<const double> b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

bool same_values(const distmat::Matrix& a, const distmat::Matrix& b) {
    if (a.rows() != b.rows() || a.dim() != b.dim() || a.values().index() != b.values().index())
        return false;
    return std::visit(
        [&](auto one) {
            const auto two = std::get<decltype(one)>(b.values());
            return one.size() == two.size() &&
                   std::memcmp(one.data(), two.data(), one.size_bytes()) == 0;
        },
        a.values());
}

void check_message(const Error& error, const std::string& path) {
    GLOVED_CHECK(error.code == ErrorCode::bad_source || error.code == ErrorCode::damaged ||
                 error.code == ErrorCode::unsupported);
    GLOVED_CHECK(error.message.starts_with(path + ": ") &&
                 error.message.find('\n') == std::string::npos);
}

/// Text as the plain parser reads it: the same numbers, or a fault on the same line.
void check_text(const Result<distmat::Matrix>& read, std::string_view text,
                const std::string& path) {
    const Plain plain = parse_plainly(text);
    if (plain.fault_line != 0) {
        GLOVED_CHECK(!read);
        GLOVED_CHECK(
            read.error().message.starts_with(path + ": line " + std::to_string(plain.fault_line)));
        return;
    }
    GLOVED_CHECK(static_cast<bool>(read) == (plain.rows != 0));
    if (!read) return;
    GLOVED_CHECK(read->rows() == plain.rows && read->dim() == plain.dim);
    GLOVED_CHECK(same_bits(std::get<std::span<const double>>(read->values()), plain.values));
}

/// What prepare takes has finite distances, symmetric and 0 to itself.
void check_distances(const distmat::Matrix& matrix, const std::string& path) {
    constexpr std::size_t kMaxRows = 8;
    static kernels::ThreadPool pool(1);
    for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean, Metric::cosine}) {
        const auto points =
            kernels::distance::prepare(pool, matrix.values(), matrix.rows(), matrix.dim(), metric,
                                       [&](std::size_t row) { return matrix.row_name(row); });
        if (!points) {
            check_message(points.error(), path);
            continue;
        }
        const auto& view = points->view;
        for (std::size_t i = 0; i < std::min(view.rows, kMaxRows); ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                const auto distance = [&](std::size_t a, std::size_t b) {
                    return distance_from_sum(metric, kernels::distance::canonical_sum(
                                                         view.row(a), view.row(b), view.dim));
                };
                GLOVED_CHECK(std::isfinite(distance(i, j)) && distance(i, j) >= 0);
                GLOVED_CHECK(distance(i, j) == distance(j, i) && distance(i, i) == 0);
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const auto variation = static_cast<unsigned>(static_cast<std::uint8_t>(data[0] - '0'));
    const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
    static const std::atomic<bool> never_stop{false};
    static fuzz::MemoryFile file;
    const std::string& path = file.path();
    file.write(content);
    constexpr std::size_t kPieces[] = {4, 7, 64, 1 << 14};
    // Starting threads takes longer than all the rest, so that few inputs pay for it.
    distmat::ReadOptions options{variation / 4 % 16 == 1 ? 2U : 0U, kPieces[variation % 4]};
    const auto read = distmat::read_matrix(path, options, never_stop);
    if (!read) check_message(read.error(), path);
    // A packing of its own: what is inside, the plain parser does not know.
    if (content.starts_with("\x1f\x8b") || content.starts_with("PK")) return 0;
    if (!npy::is_npy(content)) check_text(read, content, path);
    if (read) check_distances(*read, path);

    if ((variation & 64) == 0) return 0;
    static fuzz::MemoryFile packed;
    packed.write(tests::gzip(std::string(content)));
    const auto streamed = distmat::read_matrix(packed.path(), options, never_stop);
    GLOVED_CHECK(static_cast<bool>(read) == static_cast<bool>(streamed));
    if (read) GLOVED_CHECK(same_values(*read, *streamed));
    if (!streamed) check_message(streamed.error(), packed.path());
    return 0;
}
