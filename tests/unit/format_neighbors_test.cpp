// A neighbors file beside a model: taken as it is, or refused with file, fault and remedy; and how
// a file is added to a model, planes or neighbours.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
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

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/format/publish.hpp"
#include "common/result.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;
using format::kNoRow;
using format::Neighbors;
using format::Row;

constexpr std::size_t kRows = 5;
constexpr std::uint32_t kLength = 3;
/// Row 3 has one neighbour, row 4 none.
const std::vector<Row> kLists = {1, 2, 3,      0,      2,      4,      4,     1,
                                 0, 2, kNoRow, kNoRow, kNoRow, kNoRow, kNoRow};
constexpr std::size_t kAtLists = format::kHeaderBytes;

class NeighborsFile : public testing::Test {
  protected:
    NeighborsFile() : opened_(make_model(model_, random_entries(kRows, 2, 1))) {
        store({0, kRows}, kLists);
        file_ = read_file(path_);
    }

    void store(format::RowRange range, const std::vector<Row>& lists) const {
        auto staging = format::AddedFileStaging::create(model_, format::kAddedNeighbors);
        ASSERT_TRUE(staging) << staging.error().message;
        auto file = staging->file();
        ASSERT_TRUE(file);
        auto writer = format::NeighborsWriter::create(
            *std::move(file), path_, {kRows, 2, opened_.generation(), kLength, range, 0});
        ASSERT_TRUE(writer);
        ASSERT_TRUE(writer->append(std::span(lists).first(kLength)));
        ASSERT_TRUE(writer->append(std::span(lists).subspan(kLength)));
        ASSERT_TRUE(writer->finish());
        ASSERT_TRUE(staging->publish());
    }
    void put(const std::string& content) const {
        fs::remove(path_);
        write_file(path_, content);
    }
    /// The file after `change`, with all checksums made right again.
    std::string changed(const std::function<void(std::string& file)>& change) const {
        std::string file = file_;
        change(file);
        seal_neighbors(file, kLists.size() * sizeof(Row));
        return file;
    }
    template <class T>
    std::string with(std::size_t offset, T value) const {
        return changed(
            [&](std::string& file) { std::memcpy(file.data() + offset, &value, sizeof value); });
    }
    void expect_refused(const std::string& file, ErrorCode code, const std::string& fault) const {
        put(file);
        const auto opened = Neighbors::open(opened_);
        ASSERT_FALSE(opened) << fault;
        EXPECT_EQ(opened.error().code, code) << fault;
        EXPECT_EQ(opened.error().message,
                  path_ + ": " + fault + "; make it again with gloved-neighbors");
    }
    /// `verify` of the file with number `value` at place `at` of the lists.
    void expect_found(std::size_t at, Row value, const std::string& fault) const {
        put(with(kAtLists + at * sizeof(Row), value));
        const auto opened = Neighbors::open(opened_);
        ASSERT_TRUE(opened && *opened) << fault;
        const Status verified = (*opened)->verify();
        ASSERT_FALSE(verified) << fault;
        EXPECT_EQ(verified.error().code, ErrorCode::damaged);
        EXPECT_EQ(verified.error().message,
                  path_ + ": " + fault + "; make it again with gloved-neighbors");
    }

    const TempDir dir_;
    const std::string model_ = dir_ / "m";
    const std::string path_ = model_ + "/neighbors";
    const format::Model opened_;
    std::string file_;
};

TEST_F(NeighborsFile, HasEachRowsList) {
    const auto opened = Neighbors::open(opened_);
    ASSERT_TRUE(opened && *opened);
    EXPECT_TRUE((*opened)->verify());
    EXPECT_EQ((*opened)->k(), kLength);
    EXPECT_TRUE(std::ranges::equal((*opened)->lists(), kLists));
    EXPECT_TRUE(std::ranges::equal((*opened)->of(1), std::vector<Row>{0, 2, 4}));
    EXPECT_TRUE(std::ranges::equal((*opened)->of(3), std::vector<Row>{2}));
    EXPECT_TRUE((*opened)->of(4).empty());
    EXPECT_EQ(file_.size(), 8192U);
    EXPECT_EQ(file_.find_first_not_of('\0', kAtLists + kLists.size() * sizeof(Row)),
              std::string::npos);
    struct stat status {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0444U);
}

TEST_F(NeighborsFile, IsOptional) {
    fs::remove(path_);
    const auto opened = Neighbors::open(opened_);
    ASSERT_TRUE(opened);
    EXPECT_FALSE(*opened);
}

TEST_F(NeighborsFile, WithADamagedHeaderIsRefused) {
    expect_refused("short", ErrorCode::damaged, "5 bytes are too few for a header of 4096");
    expect_refused(with(3, 'V'), ErrorCode::damaged,
                   "not a gloved neighbors file (the first 8 bytes differ)");
    expect_refused(with(8, std::uint32_t{2}), ErrorCode::unsupported,
                   "neighbors version 2, this program reads version 1");
    expect_refused(with(12, std::uint32_t{64}), ErrorCode::damaged, "wrong header size");
    expect_refused(with(16, std::uint64_t{0}), ErrorCode::damaged, "impossible row count 0");
    expect_refused(with(24, std::uint32_t{4097}), ErrorCode::damaged, "impossible dimension 4097");
    expect_refused(with(40, std::uint64_t{56}), ErrorCode::damaged,
                   "56 bytes of lists in a file of 8192; 5 lists of 3 need 60 in 8192");
    expect_refused(with(56, std::uint64_t{4096}), ErrorCode::damaged,
                   "60 bytes of lists in a file of 4096; 5 lists of 3 need 60 in 8192");
    expect_refused(with(64, std::uint64_t{6}), ErrorCode::damaged, "lists of rows 6 to 5, of 5");
    expect_refused(with(28, std::uint32_t{0}), ErrorCode::damaged,
                   "impossible length of a list: 0");
    expect_refused(with(28, std::uint32_t{1025}), ErrorCode::damaged,
                   "impossible length of a list: 1025");
    expect_refused(with(28, std::uint32_t{2}), ErrorCode::damaged,
                   "60 bytes of lists in a file of 8192; 5 lists of 2 need 40 in 8192");
    expect_refused(with(64, std::uint64_t{5}), ErrorCode::damaged, "lists of rows 5 to 5, of 5");
    expect_refused(with(72, std::uint64_t{6}), ErrorCode::damaged, "lists of rows 0 to 6, of 5");
    expect_refused(file_ + "x", ErrorCode::damaged,
                   "the file has 8193 bytes, its header says 8192 (truncated or appended to)");
    std::string flipped = file_;
    flipped[70] = 1;
    put(flipped);
    const auto opened = Neighbors::open(opened_);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("the header checksum is "), std::string::npos);
}

TEST_F(NeighborsFile, EveryBitOfItsHeaderCounts) {
    for (std::size_t byte = 0; byte < format::kHeaderBytes; ++byte) {
        // Of the zeros between the fields and the checksum, some are enough.
        if (byte >= 80 && byte < format::kHeaderBytes - 8 && byte % 64 != 5) continue;
        for (int bit = 0; bit < 8; ++bit) {
            std::string file = file_;
            file[byte] = static_cast<char>(file[byte] ^ (1 << bit));
            put(file);
            ASSERT_FALSE(Neighbors::open(opened_)) << byte;
        }
    }
}

TEST_F(NeighborsFile, HasTheSameBytesHoweverItsListsWereAppended) {
    auto file = UniqueFd(::open((dir_ / "other").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    ASSERT_TRUE(file);
    auto writer = format::NeighborsWriter::create(
        std::move(file), dir_ / "other", {kRows, 2, opened_.generation(), kLength, {0, kRows}, 9});
    ASSERT_TRUE(writer);
    for (std::size_t row = 0; row < kRows; ++row)
        ASSERT_TRUE(writer->append(std::span(kLists).subspan(row * kLength, kLength)));
    ASSERT_TRUE(writer->finish());
    EXPECT_TRUE(read_file(dir_ / "other") == file_);
}

TEST_F(NeighborsFile, ThatIsNoFileIsRefused) {
    fs::remove(path_);
    fs::create_directory(path_);
    const auto opened = Neighbors::open(opened_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message, path_ + ": not a regular file");
    fs::remove(path_);
    fs::create_symlink("nowhere", path_);
    EXPECT_FALSE(Neighbors::open(opened_));
}

TEST_F(NeighborsFile, ThatIsCutShortWhileItIsMappedIsTold) {
    put(file_);
    const auto opened = Neighbors::open(opened_);
    ASSERT_TRUE(opened && *opened);
    EXPECT_TRUE((*opened)->has_kept_its_size());
    ASSERT_EQ(::truncate(path_.c_str(), 5000), 0);
    EXPECT_FALSE((*opened)->has_kept_its_size());
}

TEST_F(NeighborsFile, OfAnotherModelIsRefused) {
    const std::string own = format::hex(opened_.generation());
    expect_refused(with(32, std::uint64_t{7}), ErrorCode::mismatch,
                   fmt::format("of another model: 5 × 2, generation 0000000000000007; {} has 5 × 2 "
                               "and {}",
                               model_, own));
    expect_refused(with(24, std::uint32_t{3}), ErrorCode::mismatch,
                   fmt::format("of another model: 5 × 3, generation {}; {} has 5 × 2 and {}", own,
                               model_, own));
}

TEST_F(NeighborsFile, ThatIsAPartIsRefusedAsAWhole) {
    fs::remove(path_);
    store({1, 3}, {0, 2, 4, 4, 1, 0});
    const auto opened = Neighbors::open(opened_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message,
              path_ +
                  ": a part, with the neighbours of rows 1 to 2 only; make it again with "
                  "gloved-neighbors");
    const auto directory = open_directory(model_);
    ASSERT_TRUE(directory);
    auto file = open_file_at(directory->get(), "neighbors", path_);
    ASSERT_TRUE(file);
    const auto part = Neighbors::read(*std::move(file), path_, opened_);
    ASSERT_TRUE(part);
    EXPECT_TRUE(part->verify());
    EXPECT_TRUE(std::ranges::equal(part->of(2), std::vector<Row>{4, 1, 0}));
}

TEST_F(NeighborsFile, WithWrongListsIsFound) {
    expect_found(1, 5, "the list of row 0 names a row that the model does not have");
    expect_found(4, 1, "the list of row 1 names the row itself");
    expect_found(8, 4, "the list of row 2 names a row twice");
    expect_found(11, 1, "the list of row 3 continues behind its end");
    expect_found(kLists.size() + 7, 1, "byte 4184 lies behind the lists and is not zero");
    std::string flipped = file_;
    flipped[kAtLists] = 3;
    put(flipped);
    const auto opened = Neighbors::open(opened_);
    ASSERT_TRUE(opened && *opened);
    const Status verified = (*opened)->verify();
    ASSERT_FALSE(verified);
    EXPECT_NE(verified.error().message.find(": the lists have checksum "), std::string::npos);
}

/// What all files that are added to a model have in common.
class AddedFiles : public testing::TestWithParam<format::AddedFile> {
  protected:
    AddedFiles() { make_model(model_, random_entries(100, 9, 1)); }
    std::string final_path() const { return model_ + "/" + GetParam().name; }
    std::string new_path() const { return model_ + "/" + GetParam().new_name; }
    /// The beginning of such a file.
    std::string half() const {
        const auto& magic = GetParam().name == std::string("planes") ? format::kPlanesMagic
                                                                     : format::kNeighborsMagic;
        return std::string(reinterpret_cast<const char*>(magic.data()), magic.size()) + "half";
    }
    auto create() const { return format::AddedFileStaging::create(model_ + "/", GetParam()); }

    const TempDir dir_;
    const std::string model_ = dir_ / "m";
};

TEST_P(AddedFiles, AreMadeByOneProcessAtATime) {
    const auto first = create();
    ASSERT_TRUE(first);
    const auto second = create();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::conflict);
    EXPECT_EQ(second.error().message,
              fmt::format("{}: another {} makes {} there (lsof tells which)", model_,
                          GetParam().maker, GetParam().name));
}

TEST_P(AddedFiles, ThatADeadProcessLeftAreRemovedAndNobodyReadsThem) {
    write_file(new_path(), half());
    EXPECT_TRUE(format::Model::open(model_));
    { ASSERT_TRUE(create()); }
    EXPECT_FALSE(fs::exists(new_path()));
    // A conversion to the same name takes them for its own too.
    write_file(new_path(), half());
    write_file(final_path(), half());
    make_model(model_, random_entries(10, 3, 2));
    EXPECT_FALSE(fs::exists(new_path()));
    EXPECT_FALSE(fs::exists(final_path()));
    EXPECT_TRUE(format::Model::open(model_));
}

TEST_P(AddedFiles, ThatGlovedDidNotMakeStay) {
    for (const std::string& path : {new_path(), final_path()}) {
        write_file(path, "notes, years of them");
        const auto staging = create();
        ASSERT_FALSE(staging) << path;
        EXPECT_EQ(staging.error().code, ErrorCode::conflict);
        EXPECT_EQ(staging.error().message,
                  path + ": gloved did not make this file, so it is left alone; move or remove it");
        // A conversion neither replaces nor removes it.
        const Status replaced = format::Staging::check(model_);
        ASSERT_FALSE(replaced) << path;
        EXPECT_EQ(replaced.error().code, ErrorCode::conflict);
        EXPECT_EQ(read_file(path), "notes, years of them");
        fs::remove(path);
    }
}

TEST_P(AddedFiles, AreNotPutIntoAModelThatWasReplacedMeanwhile) {
    auto staging = create();
    ASSERT_TRUE(staging);
    fs::rename(model_, dir_ / "aside");
    make_model(model_, random_entries(10, 3, 2));
    const auto published = staging->publish();
    ASSERT_FALSE(published);
    EXPECT_EQ(published.error().code, ErrorCode::conflict);
    EXPECT_FALSE(fs::exists(final_path()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, AddedFiles,
                         testing::Values(format::kAddedPlanes, format::kAddedNeighbors),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace gloved::tests
