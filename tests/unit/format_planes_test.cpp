// A planes file beside a model: taken as it is, or refused with file, fault and remedy.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/publish.hpp"
#include "common/result.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/thread_pool.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

class PlanesFile : public testing::Test {
  protected:
    PlanesFile() {
        make_model(model_, random_entries(100, 9, 1));
        store_planes(model_);
        planes_ = read_file(model_ + "/planes");
    }

    void put(const std::string& content) const {
        fs::remove(model_ + "/planes");
        write_file(model_ + "/planes", content);
    }
    /// The file with `change` made to its header, whose checksum is made right again.
    std::string changed(const std::function<void(std::string& header)>& change) const {
        std::string file = planes_;
        change(file);
        seal_header(file);
        return file;
    }
    void expect_refused(const std::string& file, ErrorCode code, const std::string& fault) const {
        put(file);
        const auto opened = format::Model::open(model_);
        ASSERT_FALSE(opened) << fault;
        EXPECT_EQ(opened.error().code, code) << fault;
        EXPECT_EQ(opened.error().message,
                  fmt::format("{0}/planes: {1}; remove it (planes are optional), "
                              "or run 'gloved-convert --planes-only {0}' "
                              "to remake it",
                              model_, fault));
        // Who does not want planes is not kept from the rest.
        EXPECT_TRUE(format::Model::open(model_, format::WithPlanes::no));
    }

    const TempDir dir_;
    const std::string model_ = dir_ / "m";
    std::string planes_;
};

template <class T>
std::function<void(std::string&)> field(std::size_t offset, T value) {
    return [=](std::string& file) { std::memcpy(file.data() + offset, &value, sizeof value); };
}

TEST_F(PlanesFile, IsTakenInPlaceAndEqualsWhatIsBuilt) {
    const auto model = format::Model::open(model_);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE(model->planes());
    EXPECT_TRUE(model->verify_planes());
    EXPECT_TRUE(model->verify_sizes());
    kernels::ThreadPool pool(2);
    kernels::planes::Plane stored(*model, pool);
    EXPECT_TRUE(stored.stored());
    EXPECT_EQ(stored.bytes().data(), model->planes()->data());

    const auto without = format::Model::open(model_, format::WithPlanes::no);
    ASSERT_TRUE(without);
    EXPECT_FALSE(without->planes());
    EXPECT_TRUE(without->verify_planes());
    kernels::planes::Plane made(*without, pool);
    EXPECT_FALSE(made.stored());
    EXPECT_TRUE(std::ranges::equal(made.bytes(), stored.bytes()));
    const kernels::planes::Plane moved = std::move(made);
    EXPECT_TRUE(std::ranges::equal(moved.bytes(), stored.bytes()));
}

TEST_F(PlanesFile, IsOptional) {
    fs::remove(model_ + "/planes");
    const auto model = format::Model::open(model_);
    ASSERT_TRUE(model);
    EXPECT_FALSE(model->planes());
    EXPECT_FALSE(model->planes_header());
}

TEST_F(PlanesFile, EveryFieldOfItsHeaderIsChecked) {
    using enum ErrorCode;
    expect_refused("", damaged, "0 bytes are too few for a header of 4096");
    expect_refused(planes_.substr(0, 4095), damaged, "4095 bytes are too few for a header of 4096");
    expect_refused(changed(field<char>(0, 'x')), damaged,
                   "not a gloved planes file (the first 8 bytes differ)");
    expect_refused(changed(field<std::uint32_t>(8, 2)), unsupported,
                   "planes version 2, this program reads version 1");
    expect_refused(changed(field<std::uint32_t>(12, 64)), damaged, "wrong header size");
    expect_refused(changed(field<std::uint64_t>(16, 0)), damaged, "impossible row count 0");
    expect_refused(changed(field<std::uint64_t>(16, ~std::uint64_t{0})), damaged,
                   "impossible row count 18446744073709551615");
    expect_refused(changed(field<std::uint32_t>(24, 0)), damaged, "impossible dimension 0");
    expect_refused(changed(field<std::uint32_t>(24, 4097)), damaged, "impossible dimension 4097");
    expect_refused(changed(field<std::uint32_t>(28, 8)), unsupported,
                   "8 bits a component, this program reads 4");
    expect_refused(changed(field<std::uint64_t>(40, 1)), damaged,
                   "1 bytes of groups in a file of 8192; 100 × 9 needs 1344 in 8192");
    expect_refused(changed(field<std::uint64_t>(56, 4096)), damaged,
                   "1344 bytes of groups in a file of 4096; 100 × 9 needs 1344 in 8192");
    const auto model = format::Model::open(model_, format::WithPlanes::no);
    ASSERT_TRUE(model);
    const std::string generation = format::hex(model->generation());
    expect_refused(
        changed(field<std::uint64_t>(32, 1)), mismatch,
        fmt::format(
            "of another model: 100 × 9, generation 0000000000000001; this one has 100 × 9 and {}",
            generation));
    // The same number of groups, and of steps: only the field tells.
    expect_refused(
        changed(field<std::uint64_t>(16, 99)), mismatch,
        fmt::format("of another model: 99 × 9, generation {0}; this one has 100 × 9 and {0}",
                    generation));
    expect_refused(
        changed(field<std::uint32_t>(24, 10)), mismatch,
        fmt::format("of another model: 100 × 10, generation {0}; this one has 100 × 9 and {0}",
                    generation));
    put(changed([](std::string&) {}));
    EXPECT_TRUE(format::Model::open(model_));
}

TEST_F(PlanesFile, EveryBitOfItsHeaderCounts) {
    for (std::size_t byte = 0; byte < format::kHeaderBytes; ++byte) {
        if (byte >= 96 && byte < format::kHeaderBytes - 8 && byte % 64 != 5) continue;
        for (int bit = 0; bit < 8; ++bit) {
            std::string file = planes_;
            file[byte] = static_cast<char>(file[byte] ^ (1 << bit));
            put(file);
            ASSERT_FALSE(format::Model::open(model_)) << byte;
        }
    }
}

TEST_F(PlanesFile, OfAnotherLengthIsRefused) {
    for (const std::string& file :
         {planes_ + '\0', planes_.substr(0, planes_.size() - 1), planes_.substr(0, 4096)}) {
        expect_refused(
            file, ErrorCode::damaged,
            fmt::format("the file has {} bytes, its header says 8192 (truncated or appended to)",
                        file.size()));
    }
}

TEST_F(PlanesFile, WhatIsNoFileIsRefused) {
    fs::remove(model_ + "/planes");
    fs::create_directory(model_ + "/planes");
    const auto opened = format::Model::open(model_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message, model_ + "/planes: not a regular file");
    fs::remove(model_ + "/planes");
    fs::create_symlink("nowhere", model_ + "/planes");
    EXPECT_FALSE(format::Model::open(model_));
}

TEST_F(PlanesFile, DamagedGroupsAreFoundByTheChecksum) {
    std::string file = planes_;
    file[4096 + 700] = static_cast<char>(file[4096 + 700] ^ 1);
    put(file);
    const auto model = format::Model::open(model_);
    ASSERT_TRUE(model) << model.error().message;
    const auto verified = model->verify_planes();
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().code, ErrorCode::damaged);
    EXPECT_NE(verified.error().message.find(model_ + "/planes: the checksum is "),
              std::string::npos);
    EXPECT_NE(verified.error().message.find("gloved-convert --planes-only " + model_),
              std::string::npos);
}

TEST_F(PlanesFile, ThatIsCutShortWhileItIsMappedIsTold) {
    put(planes_);
    const auto model = format::Model::open(model_);
    ASSERT_TRUE(model);
    ASSERT_TRUE(model->verify_sizes());
    ASSERT_EQ(::truncate((model_ + "/planes").c_str(), 5000), 0);
    const auto sizes = model->verify_sizes();
    ASSERT_FALSE(sizes);
    EXPECT_NE(sizes.error().message.find(model_ + "/planes: its size has changed"),
              std::string::npos);
}

// Rows and dims at which groups and steps end, or do not; and rows whose norms the bounds leave
// out, which are all zeros.
TEST(PlanesGroups, HoldEveryRowWhereTheFormatSays) {
    for (const std::size_t rows : {1U, 15U, 16U, 17U, 48U}) {
        for (const std::size_t dim : {1U, 4U, 5U, 8U, 9U, 16U, 17U, 300U}) {
            auto entries = random_entries(rows, dim, rows + dim);
            if (rows > 1) entries[1].second.assign(dim, 0.0F);
            if (rows > 2) entries[2].second.assign(dim, 1e30F);
            const TempDir dir;
            const auto model = make_model(dir / "m", entries);
            store_planes(dir / "m");
            const std::string file = read_file(dir / "m/planes");
            const std::size_t steps = (dim + 7) / 8;
            std::string wanted(file.size(), '\0');
            std::memcpy(wanted.data(), file.data(), format::kHeaderBytes);
            for (std::size_t row = 0; row < rows; ++row) {
                const double norm = model.norms()[row];
                if (norm < 0x1p-60 || norm > 0x1p60) continue;
                const auto code = kernels::planes::encode_row(model.vector(row), norm);
                char* const group = wanted.data() + 4096 + row / 16 * (steps + 1) * 64;
                for (std::size_t i = 0; i < dim; ++i) {
                    char& byte = group[i / 8 * 64 + 4 * (row % 16) + i % 4];
                    byte = static_cast<char>(byte | code.codes[i] << (i % 8 < 4 ? 0 : 4));
                }
                std::memcpy(group + steps * 64 + 2 * (row % 16), &code.projection, 2);
                std::memcpy(group + steps * 64 + 32 + 2 * (row % 16), &code.residual, 2);
            }
            ASSERT_TRUE(file == wanted) << rows << " x " << dim;
        }
    }
}

}  // namespace
}  // namespace gloved::tests
