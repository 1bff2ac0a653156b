#include "tools/neighbors/lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/error_with.hpp"
#include "common/npy.hpp"
#include "common/progress.hpp"
#include "common/wire/reply.hpp"
#include "kernels/row_pairs.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::neighbors {
namespace {

using format::Model;
using format::Neighbors;
using kernels::Hit;

/// Lists that a thread makes the text of at a time.
constexpr std::size_t kPieceLists = 2048;
constexpr std::int32_t kNone = -1;

void append_number(std::string& out, std::int32_t number) {
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// The hits of a stored list, with scores if wanted. Error: damaged.
Status read_list(const Model& model, const Neighbors& neighbors, std::size_t row, std::size_t k,
                 bool with_scores, std::vector<Hit>& hits) {
    hits.clear();
    for (const format::Row other : neighbors.of(row, k)) {
        if (other >= model.rows()) {
            return damaged(
                "{}/{}: the list of row {} names row {}, which the model does not "
                "have; make it again with gloved-neighbors",
                model.path(), format::kNeighborsFile, row, other);
        }
        hits.push_back({other, with_scores
                                   ? kernels::cosine(model, static_cast<format::Row>(row), other)
                                   : 0});
    }
    return {};
}

}  // namespace

ListFormat list_format_of(std::string_view path) {
    if (path.ends_with(".csv")) return ListFormat::csv;
    if (path.ends_with(".npy")) return ListFormat::npy;
    if (path.ends_with(".ivecs")) return ListFormat::ivecs;
    return ListFormat::tsv;
}

std::string ListText::head(std::size_t lists) const {
    if (format_ == ListFormat::csv) return "word,neighbour,score\n";
    if (format_ != ListFormat::npy) return {};
    const std::size_t shape[] = {lists, k_};
    return npy::make_header("<i4", shape);
}

void ListText::append(std::string& out, std::size_t number, std::string_view name,
                      std::span<const Hit> hits) const {
    hits = hits.first(std::min(k_, hits.size()));
    if (is_text(format_)) {
        const RowStyle style = style_of(format_);
        const bool has_words = format_ != ListFormat::edges;
        std::string begin;  // of each line
        append_cell(begin, has_words ? name : fmt::format_int(number).c_str(), style);
        begin += style.separator;
        for (const Hit& hit : hits) {
            out += begin;
            append_cell(out, has_words ? model_.key(hit.row) : fmt::format_int(hit.row).c_str(),
                        style);
            out += style.separator;
            wire::append_score(out, hit.score);
            out += '\n';
        }
        if (style.is_table && hits.empty()) append_row(out, {name, "", ""}, style);
        return;
    }
    if (format_ == ListFormat::ivecs) append_number(out, static_cast<std::int32_t>(k_));
    for (const Hit& hit : hits) append_number(out, static_cast<std::int32_t>(hit.row));
    for (std::size_t place = hits.size(); place < k_; ++place) append_number(out, kNone);
}

Status write_lists(const Model& model, const Neighbors& neighbors, std::size_t k,
                   const ListOutput& output, std::size_t threads, const std::atomic<bool>& stop) {
    auto file = OutputFile::create(output.path, stop);
    if (!file) return file.error();
    const ListText text(model, output.format, k);
    if (Status written = file->write(text.head(model.rows())); !written) return written;
    struct Piece {
        std::size_t first = 0;
        std::size_t last = 0;
        std::string text;
        std::vector<Hit> hits;
        Status done;
    };
    Progress progress("writing", model.rows(), {"words", 1});
    const auto produce = source::pieces_of(model.rows(), kPieceLists, stop);
    const auto work = [&](Piece& piece) {
        piece.text.clear();
        for (std::size_t row = piece.first; row < piece.last; ++row) {
            piece.done = read_list(model, neighbors, row, k, is_text(output.format), piece.hits);
            if (!piece.done) return;
            text.append(piece.text, row, model.key(row), piece.hits);
        }
    };
    const auto write = [&](Piece& piece) -> Status {
        if (!piece.done) return piece.done;
        progress.update(piece.last);
        return file->write(piece.text);
    };
    if (Status done = source::run_ordered<Piece>(threads, produce, work, write); !done) return done;
    if (Status whole = model.verify_sizes(); !whole) return whole;
    if (Status synced = file->sync(); !synced) return synced;
    return file->publish();
}

}  // namespace gloved::neighbors
