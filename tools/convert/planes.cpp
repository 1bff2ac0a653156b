#include "tools/convert/planes.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "common/elapsed.hpp"
#include "common/format/model.hpp"
#include "common/format/planes.hpp"
#include "common/format/publish.hpp"
#include "common/format/writer.hpp"
#include "common/progress.hpp"
#include "kernels/planes/plane.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

/// Vectors read at a time: several groups even of the widest models.
constexpr std::size_t kPieceBytes = 4 << 20;

}  // namespace

Status write_planes(int directory_fd, const std::string& path, UniqueFd file, const char* name,
                    const format::Header& header, std::size_t threads,
                    const std::atomic<bool>& stop) {
    const std::string values_path = path + "/" + format::kValuesFile;
    const auto values = open_file_at(directory_fd, format::kValuesFile, values_path);
    if (!values) return values.error();
    auto writer = format::PlanesWriter::create(std::move(file), path + "/" + name, header.rows,
                                               header.dim, header.generation);
    if (!writer) return writer.error();
    const format::Section* const norms = header.find(format::kNorms);
    const format::Section* const vectors = header.find(format::kVectors);
    const format::PlaneShape shape = writer->shape();
    const std::size_t row_bytes = shape.dim * sizeof(float);
    const std::size_t piece_groups =
        std::max<std::size_t>(1, kPieceBytes / (format::kGroupRows * row_bytes));
    Progress progress("planes", header.rows * row_bytes);

    struct Piece {
        std::size_t first = 0;  // group
        std::size_t last = 0;
        std::vector<float> vectors;
        std::vector<double> norms;
        std::vector<std::byte> groups;
        Status done;
    };
    const auto produce = source::pieces_of(shape.groups(), piece_groups, stop);
    const auto make = [&](Piece& piece) -> Status {
        const std::size_t first_row = piece.first * format::kGroupRows;
        const std::size_t rows = std::min(piece.last * format::kGroupRows, shape.rows) - first_row;
        piece.vectors.resize(rows * shape.dim);
        piece.norms.resize(rows);
        piece.groups.resize((piece.last - piece.first) * shape.group_bytes());
        // Not mapped: pages of a mapping count as the process's own memory.
        Status read = read_all_at(values->get(), std::as_writable_bytes(std::span(piece.vectors)),
                                  vectors->offset + first_row * row_bytes, values_path);
        if (!read) return read;
        read = read_all_at(values->get(), std::as_writable_bytes(std::span(piece.norms)),
                           norms->offset + first_row * sizeof(double), values_path);
        if (!read) return read;
        kernels::planes::build_groups({piece.vectors, piece.norms, shape.dim}, 0,
                                      piece.last - piece.first, piece.groups);
        return writer->write_groups(piece.first, piece.groups);
    };
    const auto work = [&](Piece& piece) { piece.done = make(piece); };
    const auto take = [&](Piece& piece) -> Status {
        if (!piece.done) return piece.done;
        writer->hash_groups(piece.groups);
        progress.update(std::min(piece.last * format::kGroupRows, shape.rows) * row_bytes);
        return {};
    };
    if (Status made = source::run_ordered<Piece>(threads, produce, work, take); !made) return made;
    return writer->finish();
}

Result<PlanesAdded> add_planes(const std::string& model_dir, std::size_t threads,
                               const std::atomic<bool>& stop) {
    const auto begun = std::chrono::steady_clock::now();
    auto staging = format::AddedFileStaging::create(model_dir, format::kAddedPlanes);
    if (!staging) return staging.error();
    const auto model =
        format::Model::open_at(staging->directory_fd(), staging->path(), format::WithPlanes::no);
    if (!model) return model.error();
    auto file = staging->file();
    if (!file) return file.error();
    const Status written = write_planes(staging->directory_fd(), staging->path(), *std::move(file),
                                        format::kNewPlanesFile, model->header(), threads, stop);
    if (!written) return written.error();
    if (stop) return source::interrupted();
    if (Status published = staging->publish(); !published) return published.error();
    const format::PlanesHeader header{model->header().rows, model->header().dim,
                                      model->generation(), 0};
    return PlanesAdded{header.rows, header.dim, header.generation, header.file_bytes(),
                       seconds_since(begun)};
}

}  // namespace gloved::convert
