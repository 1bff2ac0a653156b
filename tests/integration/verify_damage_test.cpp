// Damaged models: each is refused or found, with a message that names file and fault, and never by
// a signal.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/planes.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

class VerifyDamage : public testing::Test {
  protected:
    VerifyDamage() {
        make_model(model_, random_entries(300, 7, 1));
        values_ = read_file(model_ + "/values");
        keys_ = read_file(model_ + "/keys");
    }

    void put(const std::string& file, const std::string& content) const {
        fs::remove(model_ + "/" + file);  // it is 0444; and a fresh file, as after a copy
        write_file(model_ + "/" + file, content);
    }
    void put_flipped(std::size_t byte, int bit) const {
        std::string damaged = values_;
        damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
        put("values", damaged);
    }
    Finished verify(std::vector<std::string> options = {}) const {
        options.insert(options.begin(), program("gloved-verify"));
        options.push_back(model_);
        return run(options);
    }
    /// Both refuse, and say which file.
    void expect_refused(const std::string& file, const std::string& what) const {
        const auto opened = format::Model::open(model_);
        ASSERT_FALSE(opened) << what;
        EXPECT_NE(opened.error().message.find(model_ + "/" + file), std::string::npos)
            << what << ": " << opened.error().message;
        const Finished finished = verify({"--quick"});
        EXPECT_EQ(finished.exit_code, 1) << what << ": signal " << finished.signal;
        EXPECT_NE(finished.out.find("FAILED  open: " + model_ + "/" + file + ": "),
                  std::string::npos)
            << what << ": " << finished.out;
    }

    const TempDir dir_;
    const std::string model_ = dir_ / "m";
    std::string values_;
    std::string keys_;
};

TEST_F(VerifyDamage, SoundModelPasses) {
    const Finished finished = verify();
    EXPECT_EQ(finished.exit_code, 0) << finished.out;
    EXPECT_NE(finished.out.find("ok      norms: "), std::string::npos) << finished.out;
    EXPECT_NE(finished.out.find("ok      ranks: a permutation of 0 to 299"), std::string::npos)
        << finished.out;
    EXPECT_NE(finished.out.find(": sound, "), std::string::npos) << finished.out;
    const Finished json = verify({"--json"});
    EXPECT_EQ(json.exit_code, 0);
    const auto object = nlohmann::json::parse(json.out);
    EXPECT_EQ(object["ok"], true);
    EXPECT_EQ(object["rows"], 300);
    EXPECT_GE(object["checks"].size(), 10U);
}

TEST_F(VerifyDamage, EveryBitOfTheHeaderMatters) {
    std::string header = values_.substr(0, format::kHeaderBytes);
    for (std::size_t byte = 0; byte < format::kHeaderBytes; ++byte) {
        for (int bit = 0; bit < 8; ++bit) {
            header[byte] = static_cast<char>(header[byte] ^ (1 << bit));
            ASSERT_FALSE(format::decode_header(std::as_bytes(std::span(header))))
                << "byte " << byte << ", bit " << bit;
            header[byte] = values_[byte];
        }
        // A file for each of them would take seconds.
        const int bit = static_cast<int>(byte % 8);
        put_flipped(byte, bit);
        const auto opened = format::Model::open(model_);
        ASSERT_FALSE(opened) << "byte " << byte << ", bit " << bit;
        ASSERT_NE(opened.error().message.find(model_ + "/values: "), std::string::npos)
            << opened.error().message;
    }
}

// A header that is consistent with its own checksum, but lies.
TEST_F(VerifyDamage, HeaderThatLiesIsRefused) {
    using format::Header;
    const auto bytes = std::as_bytes(std::span(values_)).first(format::kHeaderBytes);
    const Header sound = *format::decode_header(bytes);
    const auto put_header = [&](Header header, bool renew_generation = true) {
        if (renew_generation) header.generation = format::compute_generation(header);
        const auto encoded = format::encode_header(header);
        std::string damaged = values_;
        std::copy(encoded.begin(), encoded.end(), reinterpret_cast<std::byte*>(damaged.data()));
        put("values", damaged);
    };
    const std::vector<std::pair<std::string, std::function<void(Header&)>>> lies = {
        {"no rows", [](Header& h) { h.rows = 0; }},
        {"too many rows", [](Header& h) { h.rows = ~std::uint64_t{0}; }},
        {"more rows", [](Header& h) { h.rows = 301; }},
        {"no dim", [](Header& h) { h.dim = 0; }},
        {"huge dim", [](Header& h) { h.dim = ~std::uint32_t{0}; }},
        {"other dim", [](Header& h) { h.dim = 8; }},
        {"longer file", [](Header& h) { h.file_bytes += 4096; }},
        {"endless file", [](Header& h) { h.file_bytes = ~std::uint64_t{0}; }},
        {"section beyond the end",
         [](Header& h) { h.sections[2].offset = ~std::uint64_t{0} - 4095; }},
        {"section that wraps", [](Header& h) { h.sections[2].bytes = ~std::uint64_t{0}; }},
        {"section over another", [](Header& h) { h.sections[1].offset = h.sections[0].offset; }},
        {"section over the header", [](Header& h) { h.sections[0].offset = 0; }},
        {"unaligned section", [](Header& h) { h.sections[2].offset += 8; }},
        {"missing section", [](Header& h) { h.sections.pop_back(); }},
        {"section twice", [](Header& h) { h.sections[2].name = h.sections[1].name; }},
        {"wrong type", [](Header& h) { h.sections[0].type = format::ElementType::float32; }},
    };
    for (const auto& [what, lie] : lies) {
        Header header = sound;
        lie(header);
        put_header(header);
        expect_refused("values", what);
    }
    Header header = sound;
    ++header.generation;
    put_header(header, false);
    expect_refused("values", "wrong generation");
}

TEST_F(VerifyDamage, TruncatedOrLongerValuesAreRefused) {
    std::mt19937_64 random(2);
    std::vector<std::size_t> lengths = {
        0, 1, 7, 8, 4095, 4096, 4097, values_.size() - 1, values_.size() - 4096};
    for (int i = 0; i < 20; ++i) lengths.push_back(random() % values_.size());
    for (const std::size_t length : lengths) {
        put("values", values_.substr(0, length));
        expect_refused("values", fmt::format("{} bytes", length));
    }
    put("values", values_ + "x");
    expect_refused("values", "one byte more");
}

TEST_F(VerifyDamage, KeysOfAnotherModelAreRefused) {
    make_model(dir_ / "other", random_entries(299, 7, 2));
    put("keys", read_file(dir_ / "other/keys"));
    expect_refused("keys", "other size");
    std::string same_size = keys_;
    std::swap(same_size[1], same_size[same_size.size() - 2]);
    put("keys", same_size);
    expect_refused("keys", "same size");
    same_size = keys_;
    ++same_size[same_size.size() - 2];  // of the last key, which stays behind all others
    put("keys", same_size);
    expect_refused("keys", "same order");
    put("keys", keys_.substr(0, keys_.size() - 1));
    expect_refused("keys", "cut");
    put("keys", "");
    expect_refused("keys", "empty");
}

TEST_F(VerifyDamage, OddFilesAreRefused) {
    for (const std::string file : {"keys", "values"}) {
        const std::string content = file == "keys" ? keys_ : values_;
        fs::remove(model_ + "/" + file);
        expect_refused(file, "missing");
        ASSERT_EQ(::mkfifo((model_ + "/" + file).c_str(), 0600), 0);
        expect_refused(file, "FIFO");
        fs::remove(model_ + "/" + file);
        fs::create_directory(model_ + "/" + file);
        expect_refused(file, "directory");
        fs::remove(model_ + "/" + file);
        put(file, content);
    }
    EXPECT_EQ(verify().exit_code, 0);
    EXPECT_EQ(run({program("gloved-verify"), dir_ / "none"}).exit_code, 1);
    EXPECT_EQ(run({program("gloved-verify"), model_ + "/values"}).exit_code, 1);
}

TEST_F(VerifyDamage, FlippedBitsInTheBodyAreFound) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 200; ++i) {
        const std::size_t byte =
            format::kHeaderBytes + random() % (values_.size() - format::kHeaderBytes);
        put_flipped(byte, static_cast<int>(random() % 8));
        ASSERT_TRUE(format::Model::open(model_)) << byte;  // bodies are not checked at open
        const Finished finished = verify();
        EXPECT_EQ(finished.exit_code, 1) << "byte " << byte << ", signal " << finished.signal;
        EXPECT_NE(finished.out.find("FAILED  "), std::string::npos) << byte;
        EXPECT_NE(finished.out.find("NOT sound"), std::string::npos) << byte;
    }
}

// A model whose checksums are right and whose content is not: what a broken converter would write.
TEST_F(VerifyDamage, WrongContentUnderRightChecksumsIsFound) {
    const auto sound =
        *format::decode_header(std::as_bytes(std::span(values_)).first(format::kHeaderBytes));
    const auto put_changed = [&](const char* section, auto row, auto value) {
        std::string changed = values_;
        auto header = sound;
        for (auto& entry : header.sections) {
            if (entry.name == section)
                std::memcpy(changed.data() + entry.offset + row * sizeof value, &value,
                            sizeof value);
            entry.checksum = format::checksum(
                std::as_bytes(std::span(changed)).subspan(entry.offset, entry.bytes));
        }
        header.generation = format::compute_generation(header);
        const auto encoded = format::encode_header(header);
        std::memcpy(changed.data(), encoded.data(), encoded.size());
        put("values", changed);
    };
    const auto expect_found = [&](const std::string& fragment) {
        const Finished finished = verify();
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_NE(finished.out.find(fragment), std::string::npos) << finished.out;
    };
    put_changed("norms", std::size_t{17}, 1.0);
    expect_found("FAILED  norms: 1 wrong; the first: row 17 (\"w");
    put_changed("vectors", std::size_t{7 * 5}, std::numeric_limits<float>::quiet_NaN());
    expect_found("FAILED  finite: row 5 (");
    put_changed("ranks", std::size_t{3}, std::uint32_t{300});
    expect_found("FAILED  ranks: row 3 (");
    const auto model = format::Model::open(model_);
    ASSERT_TRUE(model);
    put_changed("ranks", std::size_t{3}, model->ranks()[4]);
    expect_found("which is that of row 3");
}

TEST_F(VerifyDamage, PlanesThatAreDamagedAreRefused) {
    store_planes(model_);
    const std::string planes = read_file(model_ + "/planes");
    EXPECT_EQ(verify().exit_code, 0);
    for (const std::size_t byte :
         {0U, 8U, 12U, 16U, 24U, 28U, 32U, 40U, 48U, 56U, 64U, 4087U, 4095U}) {
        std::string damaged = planes;
        damaged[byte] = static_cast<char>(damaged[byte] ^ 4);
        put("planes", damaged);
        expect_refused("planes", fmt::format("byte {}", byte));
    }
    put("planes", planes.substr(0, planes.size() - 1));
    expect_refused("planes", "a byte less");
    make_model(dir_ / "other", random_entries(300, 7, 2));
    store_planes(dir_ / "other");
    put("planes", read_file(dir_ / "other/planes"));
    expect_refused("planes", "of another model");
    // The remedy works, and it touches nothing else.
    const Finished renewed = run({program("gloved-convert"), "--planes-only", model_});
    EXPECT_EQ(renewed.exit_code, 0) << renewed.err;
    EXPECT_TRUE(read_file(model_ + "/planes") == planes);
    EXPECT_EQ(verify().exit_code, 0);
}

/// A model with planes whose bytes are changed, under a checksum that is right.
class VerifyPlanes : public VerifyDamage {
  protected:
    static constexpr std::size_t kDim = 7;  // one step
    static constexpr std::size_t kGroupBytes = 128;

    VerifyPlanes() {
        auto entries = random_entries(300, kDim, 1);
        entries[5].second.assign(kDim, 0.0F);
        make_model(model_, entries);
        store_planes(model_);
        planes_ = read_file(model_ + "/planes");
        zero_row_ = *format::Model::open(model_)->find("w5");
    }
    static std::size_t group_of(std::size_t row) {
        return format::kHeaderBytes + row / 16 * kGroupBytes;
    }
    /// The place of a row's projection; its residual's is 32 bytes on.
    static std::size_t bounds_of(std::size_t row) { return group_of(row) + 64 + row % 16 * 2; }
    void put_planes(std::string changed) const {
        auto header = *format::decode_planes_header(std::as_bytes(std::span(changed)));
        header.checksum =
            format::checksum(std::as_bytes(std::span(changed))
                                 .subspan(format::kHeaderBytes, header.shape().bytes()));
        const auto encoded = format::encode_planes_header(header);
        std::memcpy(changed.data(), encoded.data(), encoded.size());
        put("planes", changed);
    }
    /// The file with `units` added to the number of 16 bits at `at`.
    std::string moved(std::size_t at, int units) const {
        std::string changed = planes_;
        std::uint16_t number = 0;
        std::memcpy(&number, changed.data() + at, sizeof number);
        number = static_cast<std::uint16_t>(number + units);
        std::memcpy(changed.data() + at, &number, sizeof number);
        return changed;
    }
    void expect_found(const std::string& fragment) const {
        const Finished finished = verify();
        EXPECT_EQ(finished.exit_code, 1) << fragment;
        EXPECT_NE(finished.out.find(fragment), std::string::npos)
            << fragment << ": " << finished.out;
    }

    std::string planes_;
    std::size_t zero_row_ = 0;
};

TEST_F(VerifyPlanes, SoundOnesPass) {
    const Finished finished = verify();
    EXPECT_EQ(finished.exit_code, 0) << finished.out;
    for (const char* line :
         {"ok      planes: version 1, 4 bits a component, 8192 bytes, of this model\n",
          "ok      checksum of planes: ",
          "ok      padding of planes: zero behind dimensions and rows, and of 1 rows whose norms "
          "no bound covers\n",
          "ok      bounds of planes: hold for all 299 rows that they cover\n"}) {
        EXPECT_NE(finished.out.find(line), std::string::npos) << line << finished.out;
    }
    fs::remove(model_ + "/planes");
    const Finished without = verify();
    EXPECT_EQ(without.exit_code, 0) << without.out;
    EXPECT_NE(without.out.find("ok      planes: none; "), std::string::npos) << without.out;
    EXPECT_EQ(without.out.find("of planes"), std::string::npos) << without.out;
}

// Rows that their codes meet exactly, whose residual is 0 but for rounding, and others that float64
// finds hard.
TEST_F(VerifyPlanes, RowsThatHurtPass) {
    std::mt19937_64 random(4);
    for (const std::size_t dim : {1U, 2U, 9U, 300U, 4096U}) {
        std::vector<Entry> entries = random_entries(40, dim, dim);
        for (std::size_t i = 0; i < entries.size(); ++i) {
            auto& vector = entries[i].second;
            const float size = std::ldexp(1.0F, static_cast<int>(random() % 100) - 50);
            switch (i % 4) {
                case 0:
                    for (float& value : vector)
                        value = size * static_cast<float>(2 * static_cast<int>(random() % 16) - 15);
                    vector[0] = size * 15;
                    break;
                case 1:
                    vector.assign(dim, size);
                    break;
                case 2:
                    vector.assign(dim, -1e-30F * size);
                    vector[random() % dim] = size;
                    break;
                default:
                    for (float& value : vector) value = size * std::pow(value, 5.0F);
            }
        }
        make_model(model_, entries);
        store_planes(model_);
        const Finished finished = verify();
        EXPECT_EQ(finished.exit_code, 0) << dim << ": " << finished.out;
    }
}

TEST_F(VerifyPlanes, BoundsThatAreOneUnitWrongAreFound) {
    const auto model = *format::Model::open(model_);
    const auto named = [&](std::size_t row) {
        return fmt::format("row {} (\"{}\")", row, model.key(row));
    };
    for (const std::size_t row : {0U, 17U, 299U}) {
        for (const int units : {2, -2, -1000}) {
            put_planes(moved(bounds_of(row), units));
            expect_found(
                fmt::format("FAILED  bounds of planes: {}/planes: 1 rows' do not hold; the first: "
                            "{}: its projection",
                            model_, named(row)));
            put_planes(moved(bounds_of(row) + 32, -units));
            expect_found(
                fmt::format("FAILED  bounds of planes: {}/planes: 1 rows' do not hold; the first: "
                            "{}: its residual",
                            model_, named(row)));
        }
    }
    // One unit is a whole one too much for what was rounded by less than 1¼: of some rows, and
    // never of none.
    std::string one = planes_;
    for (std::size_t row = 0; row < 300; ++row) {
        std::uint16_t projection = 0;
        std::memcpy(&projection, one.data() + bounds_of(row), sizeof projection);
        if (row != zero_row_) ++projection;
        std::memcpy(one.data() + bounds_of(row), &projection, sizeof projection);
    }
    put_planes(one);
    expect_found("FAILED  bounds of planes: ");
}

// 4 × 299 wrong bounds, each on one of its sides.
TEST_F(VerifyPlanes, BoundsThatAreTooLowOrTooHighAreFoundInEveryRow) {
    const auto model = *format::Model::open(model_);
    for (const std::size_t residuals : {0U, 32U}) {
        for (const int units : {2, -2}) {
            std::string changed = planes_;
            for (std::size_t row = 0; row < model.rows(); ++row) {
                if (row == zero_row_) continue;
                const std::size_t at = bounds_of(row) + residuals;
                std::uint16_t bound = 0;
                std::memcpy(&bound, changed.data() + at, sizeof bound);
                bound = static_cast<std::uint16_t>(bound + units);
                std::memcpy(changed.data() + at, &bound, sizeof bound);
            }
            put_planes(changed);
            expect_found(fmt::format(
                "FAILED  bounds of planes: {}/planes: 299 rows' do not hold; the first: ", model_));
        }
    }
}

TEST_F(VerifyPlanes, CodesThatAreNotTheRowsAreFound) {
    std::string changed = planes_;
    for (std::size_t i = 0; i < 4; ++i)
        changed[group_of(33) + 4 + i] = static_cast<char>(~changed[group_of(33) + 4 + i]);
    changed[group_of(33) + 7] = static_cast<char>(changed[group_of(33) + 7] & 15);  // of the eighth
                                                                                    // dimension,
                                                                                    // there is none
    put_planes(changed);
    expect_found("FAILED  bounds of planes: " + model_ +
                 "/planes: 1 rows' do not hold; the first: row 33 (");
}

TEST_F(VerifyPlanes, WhatMustBeZeroAndIsNotIsFound) {
    std::string changed = planes_;
    changed[group_of(20) + 4 * 4 + 3] = static_cast<char>(changed[group_of(20) + 4 * 4 + 3] | 0x10);
    put_planes(changed);
    expect_found("FAILED  padding of planes: " + model_ +
                 "/planes: 1 rows with codes or numbers where zeros belong; the "
                 "first: row 20 (");
    put_planes(moved(bounds_of(303), 1));
    expect_found("the first: place 303, behind the last row");
    put_planes(moved(bounds_of(zero_row_) + 32, 1));
    expect_found(fmt::format("the first: row {} (\"w5\")", zero_row_));
    changed = planes_;
    changed[group_of(zero_row_) + 4 * (zero_row_ % 16)] = 1;
    put_planes(changed);
    expect_found(fmt::format("the first: row {} (\"w5\")", zero_row_));
    changed = planes_;
    changed[8000] = 1;
    put("planes", changed);
    expect_found("FAILED  padding of planes: " + model_ +
                 "/planes: byte 8000 lies behind the groups and is not zero");
}

TEST_F(VerifyPlanes, FlippedBitsAreFound) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 50; ++i) {
        const std::size_t byte =
            format::kHeaderBytes + random() % (planes_.size() - format::kHeaderBytes);
        std::string damaged = planes_;
        damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << random() % 8));
        put("planes", damaged);
        ASSERT_TRUE(format::Model::open(model_)) << byte;
        const Finished finished = verify();
        EXPECT_EQ(finished.exit_code, 1) << byte;
        EXPECT_NE(finished.out.find(" of planes: "), std::string::npos) << byte;
        EXPECT_NE(finished.out.find("FAILED  "), std::string::npos) << byte;
    }
}

TEST_F(VerifyDamage, WrongListsOfNeighborsAreFound) {
    ASSERT_EQ(run({program("gloved-neighbors"), model_}).exit_code, 0);
    const Finished sound = verify({"--neighbors", "all"});
    EXPECT_EQ(sound.exit_code, 0) << sound.out;
    EXPECT_NE(sound.out.find("ok      lists of neighbors: 300 of 300 are those of a plain"),
              std::string::npos)
        << sound.out;
    EXPECT_NE(verify().out.find("ok      lists of neighbors: 20 of 300"), std::string::npos);

    // The two last neighbours of the rows 123 and 200 change places.
    const std::string stored = read_file(model_ + "/neighbors");
    std::string damaged = stored;
    for (const std::ptrdiff_t row : {200, 123}) {
        const auto place = damaged.begin() + static_cast<std::ptrdiff_t>(format::kHeaderBytes) +
                           (row * 10 + 8) * 4;
        std::swap_ranges(place, place + 4, place + 4);
    }
    put("neighbors", damaged);
    const Finished summed = verify();
    EXPECT_EQ(summed.exit_code, 1);
    EXPECT_NE(summed.out.find("FAILED  rows of neighbors: " + model_ + "/neighbors: the lists"),
              std::string::npos)
        << summed.out;
    // With right checksums only the search finds it.
    seal_neighbors(damaged, 300 * 10 * sizeof(format::Row));
    put("neighbors", damaged);
    const Finished searched = verify({"--neighbors", "all"});
    EXPECT_EQ(searched.exit_code, 1);
    EXPECT_NE(searched.out.find("ok      rows of neighbors: "), std::string::npos);
    EXPECT_NE(searched.out.find("FAILED  lists of neighbors: " + model_ +
                                "/neighbors: 2 of 300 lists are wrong; the first: the list of row "
                                "123 ("),
              std::string::npos)
        << searched.out;
    EXPECT_NE(searched.out.find(" at place 9, and a plain search row "), std::string::npos)
        << searched.out;

    // Lists of damaged values mean nothing.
    put("neighbors", stored);
    put_flipped(values_.size() - 3000, 0);
    const Finished unsound = verify();
    EXPECT_EQ(unsound.exit_code, 1);
    EXPECT_NE(unsound.out.find("FAILED  lists of neighbors: not compared"), std::string::npos)
        << unsound.out;
    put("values", values_);

    put("neighbors", stored.substr(0, 100));
    const Finished quick = verify({"--quick"});
    EXPECT_EQ(quick.exit_code, 1);
    EXPECT_NE(quick.out.find("FAILED  neighbors: " + model_ + "/neighbors: 100 bytes"),
              std::string::npos)
        << quick.out;
}

}  // namespace
}  // namespace gloved::tests
