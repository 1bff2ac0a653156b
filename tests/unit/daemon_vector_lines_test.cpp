// The lines of VEC in pieces of any size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/base64.hpp"
#include "common/format/model.hpp"
#include "common/wire/request.hpp"
#include "daemon/text_source.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::daemon {
namespace {

using wire::Encoding;
using wire::Form;

class VectorPieces : public testing::Test {
  protected:
    void open(std::size_t dim) {
        model_ = std::make_shared<const format::Model>(
            tests::make_model(dir_ / std::to_string(dim), tests::random_entries(20, dim, dim)));
    }
    VectorLines source(Form form, Encoding encoding, std::vector<kernels::Row> rows) const {
        return {form, encoding, std::move(rows), model_};
    }
    std::string base64_of(kernels::Row row) const {
        std::string text;
        append_base64(text, std::as_bytes(model_->vector(row)));
        return text;
    }

    tests::TempDir dir_;
    std::shared_ptr<const format::Model> model_;
};

TEST_F(VectorPieces, AreTheWholeWhereverTheyEnd) {
    for (const std::size_t dim : {1U, 2U, 3U, 4U, 33U}) {
        open(dim);
        for (const Form form : {Form::text, Form::json}) {
            for (const Encoding encoding : {Encoding::decimal, Encoding::base64}) {
                std::string whole;
                source(form, encoding, {3, 0, 3, 19}).append_to(whole, 1 << 20);
                for (std::size_t enough = 1; enough < 200; ++enough) {
                    auto lines = source(form, encoding, {3, 0, 3, 19});
                    std::string all;
                    while (!lines.finished()) {
                        std::string piece;
                        lines.append_to(piece, enough);
                        ASSERT_FALSE(piece.empty());
                        ASSERT_LE(piece.size(), enough + 100);
                        ASSERT_TRUE(lines.finished() || piece.size() >= enough);
                        all += piece;
                    }
                    ASSERT_EQ(all, whole) << dim << " numbers, pieces of " << enough;
                }
            }
        }
    }
}

TEST_F(VectorPieces, AreTheBase64OfEachRow) {
    open(100);
    std::string text;
    source(Form::text, Encoding::base64, {7, 1}).append_to(text, 1 << 20);
    EXPECT_EQ(text, base64_of(7) + "\n" + base64_of(1) + "\n");
    std::string json;
    source(Form::json, Encoding::base64, {7, 1}).append_to(json, 1 << 20);
    EXPECT_EQ(json, "{\"vector_base64\":\"" + base64_of(7) + "\"},{\"vector_base64\":\"" +
                        base64_of(1) + "\"}");
}

TEST_F(VectorPieces, HoldNoVectors) {
    open(33);
    std::vector<kernels::Row> rows(1000, 5);
    rows.shrink_to_fit();
    EXPECT_LE(source(Form::text, Encoding::base64, rows).held_bytes(),
              sizeof(VectorLines) + 1000 * sizeof(kernels::Row));
}

}  // namespace
}  // namespace gloved::daemon
