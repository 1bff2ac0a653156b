// Planes by a writer that means harm: as far off as the format allows, or a little further.
// gloved-verify must find every number that the format forbids, and with those that it allows every
// answer must be the oracle's, byte by byte.
//
// GLOVED_HOSTILE_PLANES: how many planes. GLOVED_HOSTILE_SEED: other ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/planes.hpp"
#include "common/result.hpp"
#include "kernels/bounds.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/support/engine_answers.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/planes.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

using Random = std::mt19937_64;

constexpr std::size_t kPlanesOfModel = 25;
constexpr int kTop = 15;
constexpr int kMaxStored = 65535;
/// What the format lets a stored number differ from the exact one by, in units: less than this.
constexpr long double kWithin = 1.5L;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

bool chance(Random& random, unsigned percent) { return random() % 100 < percent; }

/// What a row and a code say, in the units in which a plane stores it. long double is exact enough:
/// the writer stays away from numbers about which it, or the allowance that verify makes, could be
/// wrong.
struct Exact {
    long double projection = 0;
    long double residual = 0;
    long double square = 0;  // |c|²

    Exact(std::span<const float> row, const std::vector<std::uint8_t>& codes) {
        long double product = 0;
        long double norm = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const long double x = row[i];
            product += x * (2 * codes[i] - kTop);
            norm += x * x;
        }
        norm = std::sqrt(norm);
        const long double along = product / norm;
        long double left = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const long double level = 2 * codes[i] - kTop;
            const long double across = level - along * row[i] / norm;
            left += across * across;
            square += level * level;
        }
        const long double unit =
            kTop * std::sqrt(static_cast<long double>(row.size())) / kMaxStored;
        projection = along / unit;
        residual = std::sqrt(left) / unit;
        square /= unit * unit;
    }
};

enum class Verdict { legal, illegal, unclear };

/// By FORMAT.md's words.
Verdict verdict_of(const Exact& exact, int p, int h) {
    const auto is_near = [](long double a, long double b, long double within) {
        return std::fabs(a - b) < within;
    };
    const long double squares = 1e-11L * exact.square;
    const long double residual = exact.residual * exact.residual;
    const long double h_less = h - kWithin;
    if (is_near(exact.projection, p, 1e-6L) || is_near(exact.projection, p + kWithin, 1e-6L) ||
        is_near(static_cast<long double>(h) * h, residual, squares) ||
        (h_less > 0 && is_near(h_less * h_less, residual, squares))) {
        return Verdict::unclear;
    }
    const bool legal = p <= exact.projection && exact.projection < p + kWithin && h >= 1 &&
                       exact.residual <= h && h < exact.residual + kWithin;
    return legal ? Verdict::legal : Verdict::illegal;
}

struct HostileRow {
    std::vector<std::uint8_t> codes;
    int p = 0;
    int h = 0;
    bool covered = true;
    bool legal = true;
};

std::vector<std::uint8_t> hostile_codes(Random& random, std::span<const float> row, double norm) {
    std::vector<std::uint8_t> codes = kernels::planes::encode_row(row, norm).codes;
    const auto kind = random() % 8;
    if (kind >= 5) {
        for (std::size_t i = 0; i < codes.size(); ++i) {
            if (kind == 5 && chance(random, 20))
                codes[i] = static_cast<std::uint8_t>(random() % 16);
            if (kind == 6) codes[i] = static_cast<std::uint8_t>(random() % 16);
            if (kind == 7) codes[i] = static_cast<std::uint8_t>(row[i] < 0 ? 7 : 8);
        }
        // A projection must not be negative: the opposite code's is not.
        if (Exact(row, codes).projection < 0) {
            for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(kTop - code);
        }
    }
    return codes;
}

/// Numbers that the format allows: most of them as far from the exact ones as they may be.
bool choose_legal(Random& random, const Exact& exact, HostileRow& row) {
    const int p_high = static_cast<int>(std::floor(exact.projection));
    const int p_low = std::max(0, static_cast<int>(std::floor(exact.projection - kWithin)) + 1);
    const int h_low = std::max(1, static_cast<int>(std::ceil(exact.residual)));
    const int h_high =
        std::clamp(static_cast<int>(std::ceil(exact.residual + kWithin)) - 1, 1, kMaxStored);
    row.p = chance(random, 70) ? p_low : p_high;
    row.h = chance(random, 50) ? h_low : h_high;
    return row.p <= kMaxStored && row.h <= kMaxStored &&
           verdict_of(exact, row.p, row.h) == Verdict::legal;
}

/// One number that the format forbids, by a hair or by far, on either side.
bool choose_illegal(Random& random, const Exact& exact, HostileRow& row) {
    if (!choose_legal(random, exact, row)) return false;
    const int by = chance(random, 50)   ? 1
                   : chance(random, 50) ? static_cast<int>(1 + random() % 20)
                                        : static_cast<int>(1 + random() % 60000);
    switch (random() % 8) {
        case 0:
        case 1:
            row.p += by;
            break;
        case 2:
        case 3:
            row.p -= by + 1;
            break;
        case 4:
            row.h += by + 1;
            break;
        case 5:
            row.h -= by;
            break;
        case 6:
            row.p = chance(random, 50) ? 0 : kMaxStored;
            break;
        default:
            row.h = chance(random, 50) ? 0 : kMaxStored;
    }
    return row.p >= 0 && row.p <= kMaxStored && row.h >= 0 && row.h <= kMaxStored &&
           verdict_of(exact, row.p, row.h) == Verdict::illegal;
}

/// The rows of a hostile plane; `illegal` of them, at most, have a number that is.
std::vector<HostileRow> hostile_rows(Random& random, const format::Model& model,
                                     std::size_t illegal) {
    std::vector<HostileRow> rows(model.rows());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        HostileRow& row = rows[r];
        row.covered = kernels::bound_covers(model.norms()[r]);
        if (!row.covered) continue;
        do {
            row.codes = hostile_codes(random, model.vector(r), model.norms()[r]);
        } while (!choose_legal(random, Exact(model.vector(r), row.codes), row));
    }
    for (std::size_t i = 0; i < illegal; ++i) {
        HostileRow& row = rows[random() % rows.size()];
        if (!row.covered || !row.legal) continue;
        const Exact exact(model.vector(static_cast<std::size_t>(&row - rows.data())), row.codes);
        const HostileRow before = row;
        for (int attempt = 0; attempt < 20 && row.legal; ++attempt)
            row.legal = !choose_illegal(random, exact, row);
        if (row.legal) row = before;
    }
    return rows;
}

/// Writes the rows as the model's planes file, as FORMAT.md has it.
void write_planes(const std::string& directory, const format::Model& model,
                  const std::vector<HostileRow>& rows) {
    format::PlanesHeader header{model.rows(), static_cast<std::uint32_t>(model.dim()),
                                model.generation(), 0};
    const format::PlaneShape shape = header.shape();
    std::string groups(shape.bytes(), '\0');
    for (std::size_t r = 0; r < rows.size(); ++r) {
        if (!rows[r].covered) continue;
        char* const group = groups.data() + r / 16 * shape.group_bytes();
        for (std::size_t i = 0; i < model.dim(); ++i) {
            char& byte = group[i / 8 * 64 + 4 * (r % 16) + i % 4];
            byte = static_cast<char>(byte | rows[r].codes[i] << (i % 8 < 4 ? 0 : 4));
        }
        char* const bounds = group + shape.steps() * 64;
        const auto put = [&](std::size_t at, int value) {
            bounds[at] = static_cast<char>(value & 255);
            bounds[at + 1] = static_cast<char>(value >> 8);
        };
        put(2 * (r % 16), rows[r].p);
        put(32 + 2 * (r % 16), rows[r].h);
    }
    header.checksum = format::checksum(std::as_bytes(std::span(groups)));
    const auto head = format::encode_planes_header(header);
    std::string file(header.file_bytes(), '\0');
    std::copy_n(reinterpret_cast<const char*>(head.data()), head.size(), file.begin());
    std::copy(groups.begin(), groups.end(), file.begin() + format::kHeaderBytes);
    const std::string path = directory + "/" + format::kPlanesFile;
    fs::remove(path);
    write_file(path, file);
}

/// Few rows, of which many tie or nearly do, all around or all on one side.
std::vector<Entry> entries_of(Random& random) {
    constexpr std::size_t kDims[] = {1, 2, 3, 5, 8, 9, 16, 17, 25, 32, 33, 50, 64, 65, 80};
    const std::size_t rows = 40 + random() % 80;
    const std::size_t dim = kDims[random() % std::size(kDims)];
    auto entries = random_entries(rows, dim, random());
    const float shift = chance(random, 50) ? 0.8F : 0.0F;
    const float spread = chance(random, 30) ? 1e-3F : 1.0F;
    for (std::size_t r = 0; r < rows; ++r) {
        auto& values = entries[r].second;
        for (float& value : values) value = value * spread + shift;
        if (r % 4 == 1) {
            values = entries[r - 1].second;
            for (float& value : values) value *= 2;  // the same direction, to the last bit
        } else if (r % 4 == 2) {
            values = entries[r - 1].second;
            values[random() % dim] *= 1 + 0x1p-20F;
        }
        if (r % 37 == 36) values.assign(dim, chance(random, 50) ? 0.0F : 1e-30F);
    }
    return entries;
}

/// A direction for which the inequality leaves nothing over: the row lies between it and the row's
/// code, in one plane.
std::vector<float> beyond_code(std::span<const float> row, const std::vector<std::uint8_t>& codes,
                               double beyond) {
    double product = 0;
    double squares = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double level = 2 * codes[i] - kTop;
        product += static_cast<double>(row[i]) * level;
        squares += level * level;
    }
    std::vector<float> query(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double level = 2 * codes[i] - kTop;
        query[i] = static_cast<float>(row[i] + beyond * (row[i] - product / squares * level));
    }
    return query;
}

struct Asked {
    Query query;
    std::vector<Hit> wanted;
};

std::vector<Asked> questions(Random& random, const format::Model& model,
                             const std::vector<HostileRow>& rows) {
    std::vector<Asked> asked;
    Oracle oracle(model);
    const auto count = static_cast<Row>(model.rows());
    for (int i = 0; i < 5; ++i) {
        const Row target = static_cast<Row>(random() % count);
        if (!rows[target].covered) continue;
        const auto row = model.vector(target);
        std::vector<float> direction(row.begin(), row.end());
        if (const auto kind = random() % 10; kind < 7) {
            constexpr double kBeyond[] = {0.01, 0.3, 1, 5, 100};
            direction =
                beyond_code(row, rows[target].codes, kBeyond[random() % std::size(kBeyond)]);
        } else if (kind == 7) {
            for (float& value : direction)
                value += static_cast<float>(random() % 1000) * 1e-3F - 0.5F;
        }
        // Against the row: where scores are negative the bound's other side is asked.
        if (chance(random, 40)) {
            for (float& value : direction) value = -value;
        }
        const auto vector = kernels::make_query_vector(direction);
        if (!vector) continue;
        const auto add = [&](Query query) {
            Asked one{std::move(query), {}};
            one.wanted = oracle.answer(one.query).hits;
            asked.push_back(std::move(one));
        };
        // The row's own score is the threshold: a bound that is too low by any amount loses it.
        Query exactly{kernels::Cosine{*vector}, 7, {}, {}};
        exactly.filter.min_score = oracle.score(exactly, target);
        add(exactly);
        exactly.filter.rows =
            kernels::RowRange{target / 3 * 3, std::min<Row>(target / 3 * 3 + 5, count)};
        add(exactly);
        add({kernels::Cosine{*vector}, 1 + random() % 5, {}, {}});
        add({kernels::Cosine{*vector}, 1 + random() % 5, {static_cast<Row>(random() % count)}, {}});
    }
    return asked;
}

class HostilePlanes : public testing::Test {
  protected:
    HostilePlanes() : random_(number_from("GLOVED_HOSTILE_SEED", 1)) {}

    /// Whether verify finds the rows that are illegal, and no others.
    void expect_verified(const format::Model& model, std::size_t illegal,
                         const std::string& what) const {
        const std::atomic<bool> stop{false};
        bool told = false;
        const Status done = verify::check_planes(model, 1, stop, [&](const verify::Check& check) {
            if (check.name != "bounds of planes") {
                EXPECT_TRUE(check.ok) << what << ": " << check.name << ": " << check.detail;
                return;
            }
            told = true;
            if (illegal == 0) {
                EXPECT_TRUE(check.ok) << what << ": " << check.detail;
                return;
            }
            EXPECT_FALSE(check.ok)
                << what << ": verify finds none of " << illegal << " illegal rows";
            const std::string wanted =
                fmt::format("planes: {} rows' do not hold; the first: ", illegal);
            if (!check.ok) {
                EXPECT_NE(check.detail.find(wanted), std::string::npos)
                    << what << ": " << check.detail;
            }
        });
        EXPECT_TRUE(done);
        EXPECT_TRUE(told) << what;
    }

    void expect_answers(Engine& engine, const std::vector<Asked>& asked, const std::string& what) {
        std::vector<Query> queries;
        for (const Asked& one : asked) {
            expect_identical(run_one(engine, one.query).hits, one.wanted, what + ", alone");
            queries.push_back(one.query);
        }
        // Those of a range go alone anyway.
        std::erase_if(queries, [](const Query& query) { return query.filter.rows.has_value(); });
        const auto answers = run_all(engine, queries);
        std::size_t at = 0;
        for (const Asked& one : asked) {
            if (!one.query.filter.rows)
                expect_identical(answers[at++].hits, one.wanted, what + ", with others");
        }
        answers_ += asked.size() + queries.size();
    }

    void ask_every_engine(const format::Model& model, const std::vector<HostileRow>& rows,
                          const std::string& what) {
        const std::vector<Asked> asked = questions(random_, model, rows);
        kernels::EngineOptions options;
        options.threads = 1;
        const auto& simd = kernels::simd_names();
        options.simd = simd[random_() % simd.size()];
        expect_answers(*require_engine("cpu", model, options), asked,
                       what + ", cpu " + options.simd);
        options.simd.clear();
        fake_cuda::Settings settings;
        settings.plane_pass_capacity = 20;
        fake_cuda::reset(settings);
        expect_answers(*require_engine("cuda", model, options), asked, what + ", cuda");
    }

    Random random_;
    std::uint64_t answers_ = 0;
    const TempDir dir_;
};

TEST_F(HostilePlanes, AreFoundIfIllegalAndHarmlessIfLegal) {
    const std::uint64_t planes = number_from("GLOVED_HOSTILE_PLANES", 300);
    std::uint64_t illegal_planes = 0;
    std::uint64_t illegal_rows = 0;
    const std::string directory = dir_ / "model";
    for (std::uint64_t plane = 0; plane < planes; ++plane) {
        if (plane % kPlanesOfModel == 0) make_model(directory, entries_of(random_));
        const auto without = format::Model::open(directory, format::WithPlanes::no);
        ASSERT_TRUE(without) << without.error().message;
        // Every second plane is legal; of the others many have one row that is not.
        const std::size_t wanted = plane % 2 == 0        ? 0
                                   : chance(random_, 60) ? 1
                                                         : 1 + random_() % 30;
        const auto rows = hostile_rows(random_, *without, wanted);
        const auto illegal = static_cast<std::size_t>(std::count_if(
            rows.begin(), rows.end(), [](const HostileRow& row) { return !row.legal; }));
        write_planes(directory, *without, rows);
        const auto model = format::Model::open(directory);
        ASSERT_TRUE(model) << model.error().message;
        const std::string what = fmt::format("plane {} of {} x {} with {} illegal rows", plane,
                                             model->rows(), model->dim(), illegal);
        expect_verified(*model, illegal, what);
        illegal_rows += illegal;
        illegal_planes += illegal > 0 ? 1 : 0;
        if (illegal == 0) ask_every_engine(*model, rows, what);
        if (HasFailure()) break;
    }
    std::printf(
        "%llu planes, of which %llu have %llu illegal rows; %llu answers of the others compared\n",
        static_cast<unsigned long long>(planes), static_cast<unsigned long long>(illegal_planes),
        static_cast<unsigned long long>(illegal_rows), static_cast<unsigned long long>(answers_));
    EXPECT_GT(illegal_planes, planes / 4);
    EXPECT_GT(answers_, planes);
}

}  // namespace
}  // namespace gloved::tests
