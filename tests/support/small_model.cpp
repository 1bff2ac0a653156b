#include "tests/support/small_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include "common/format/layout.hpp"
#include "common/format/planes.hpp"
#include "common/format/publish.hpp"
#include "common/format/writer.hpp"
#include "kernels/canonical.hpp"
#include "kernels/planes/plane.hpp"

namespace gloved::tests {
namespace {

template <class R>
decltype(auto) require(R&& result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::forward<R>(result);
}

}  // namespace

format::Model make_model(const std::string& directory, const std::vector<Entry>& entries) {
    std::vector<std::uint32_t> order(entries.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return entries[a].first < entries[b].first;
    });

    const std::size_t dim = entries.at(0).second.size();
    auto staging = *require(format::Staging::create(directory));
    auto writer = *require(format::ModelWriter::create(
        staging.directory_fd(), staging.path(), entries.size(), static_cast<std::uint32_t>(dim)));
    for (const std::uint32_t rank : order) {
        const auto& [word, vector] = entries[rank];
        const double norm = kernels::canonical_norm(vector.data(), dim);
        require(writer.append_key(word));
        require(writer.append_vectors(vector));
        require(writer.append_norms(std::span(&norm, 1)));
        require(writer.append_ranks(std::span(&rank, 1)));
    }
    require(writer.finish());
    require(staging.publish([](const std::string&) {}));
    return *require(format::Model::open(directory));
}

void store_planes(const std::string& directory) {
    auto staging = *require(format::AddedFileStaging::create(directory, format::kAddedPlanes));
    const auto model = *require(format::Model::open(directory, format::WithPlanes::no));
    auto writer = *require(format::PlanesWriter::create(
        *require(staging.file()), directory + "/" + format::kNewPlanesFile, model.rows(),
        static_cast<std::uint32_t>(model.dim()), model.generation()));
    std::vector<std::byte> groups(writer.shape().bytes());
    kernels::planes::build_groups({model.vectors(), model.norms(), model.dim()}, 0,
                                  writer.shape().groups(), groups);
    require(writer.write_groups(0, groups));
    writer.hash_groups(groups);
    require(writer.finish());
    require(staging.publish());
}

format::Model damage_rows(const std::string& directory, std::span<const std::uint32_t> rows) {
    const std::string path = directory + "/" + format::kValuesFile;
    std::size_t first = 0;
    std::size_t row_bytes = 0;
    {
        const auto model = *require(format::Model::open(directory));
        row_bytes = model.dim() * sizeof(float);
        for (const format::Section& section : model.header().sections) {
            if (section.name == "vectors") first = section.offset;
        }
    }
    std::filesystem::permissions(path, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const float damage = std::numeric_limits<float>::quiet_NaN();
    for (const std::uint32_t row : rows) {
        file.seekp(static_cast<std::streamoff>(first + row * row_bytes));
        file.write(reinterpret_cast<const char*>(&damage), sizeof damage);
    }
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
    return *require(format::Model::open(directory));
}

void seal_header(std::string& file) {
    const auto bytes = std::as_bytes(std::span(file)).first(format::kHeaderBytes - 8);
    const std::uint64_t checksum = format::checksum(bytes);
    std::memcpy(file.data() + format::kHeaderBytes - 8, &checksum, sizeof checksum);
}

void seal_neighbors(std::string& file, std::size_t lists_bytes) {
    constexpr std::size_t kAtListsChecksum = 48;
    const auto lists = std::as_bytes(std::span(file)).subspan(format::kHeaderBytes, lists_bytes);
    const std::uint64_t checksum = format::checksum(lists);
    std::memcpy(file.data() + kAtListsChecksum, &checksum, sizeof checksum);
    seal_header(file);
}

std::vector<Entry> random_entries(std::size_t rows, std::size_t dim, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> component(0.0F, 0.4F);
    std::vector<Entry> entries(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        entries[i].first = fmt::format("w{}", i);
        entries[i].second.resize(dim);
        for (float& value : entries[i].second) value = component(random);
    }
    return entries;
}

}  // namespace gloved::tests
