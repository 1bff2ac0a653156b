// Headers as NumPy 1.24 wrote them, and what must not pass for one.
#include "common/npy.hpp"
#include "common/result.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::npy {
namespace {

/// As numpy.save lays it out.
std::string file_with(std::string_view dictionary, char version = 1) {
    std::string header(dictionary);
    const std::size_t before = version == 1 ? 10 : 12;
    while ((before + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    std::string text = "\x93NUMPY";
    text += {version, '\0'};
    for (std::size_t i = 0; i < before - 8; ++i)
        text += static_cast<char>(header.size() >> (8 * i) & 0xFF);
    return text + header;
}

void expect_refused(const std::string& text, ErrorCode code, std::string_view says) {
    const auto header = parse_header(text, "a.npy");
    const Status plain = header ? check_plain(*header, "a.npy") : Status(header.error());
    ASSERT_FALSE(plain) << text;
    EXPECT_EQ(plain.error().code, code) << plain.error().message;
    EXPECT_NE(plain.error().message.find(says), std::string::npos) << plain.error().message;
    EXPECT_EQ(plain.error().message.rfind("a.npy: ", 0), 0U) << plain.error().message;
    EXPECT_NE(plain.error().message.find("numpy.save"), std::string::npos) << plain.error().message;
}

TEST(Npy, ReadsWhatNumPyWrites) {
    struct Case {
        std::string dictionary;
        Type type;
        std::vector<std::size_t> shape;
        std::size_t data_bytes;
    };
    for (const auto& [dictionary, type, shape, data_bytes] :
         {Case{"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4), }",
               Type::float64,
               {2, 3, 4},
               192},
          Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", Type::float32, {5}, 20},
          Case{"{'descr': '<i4', 'fortran_order': False, 'shape': (), }", Type::int32, {}, 4},
          // One dimension lies the same way in both orders, and NumPy says either.
          Case{"{'descr': '<f8', 'fortran_order': True, 'shape': (5,), }", Type::float64, {5}, 40},
          Case{"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 18446744073709551615, 9), }",
               Type::float64,
               {0, 18446744073709551615U, 9},
               0},
          Case{"{'descr': '|S7', 'fortran_order': False, 'shape': (2, 2), }",
               Type::other,
               {2, 2},
               0},
          Case{"{'descr': [('index', '<i8'), ('at', '<f4', (2,))], 'fortran_order': False, "
               "'shape': (1,), }",
               Type::other,
               {1},
               0},
          Case{R"({"shape":(1,2),"descr":"<f4","fortran_order":False})",
               Type::float32,
               {1, 2},
               8}}) {
        for (const char version : {'\1', '\2', '\3'}) {
            const std::string text = file_with(dictionary, version);
            const auto header = parse_header(text + "numbers", "a.npy");
            ASSERT_TRUE(header) << dictionary << ": " << header.error().message;
            EXPECT_EQ(header->type, type) << dictionary;
            EXPECT_EQ(header->shape, shape) << dictionary;
            EXPECT_EQ(header->data_offset, text.size());
            EXPECT_EQ(header->data_bytes, data_bytes) << dictionary;
        }
    }
}

TEST(Npy, WritesWhatNumPyWrites) {
    const std::size_t shape[] = {341479, 100};
    EXPECT_EQ(make_header("<f4", shape),
              file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (341479, 100), }"));
    const std::size_t one[] = {7};
    EXPECT_EQ(make_header("<f8", one),
              file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }"));
    EXPECT_EQ(make_header("[('index', '<i8'), ('distance', '<f4')]", shape),
              file_with("{'descr': [('index', '<i8'), ('distance', '<f4')], 'fortran_order': "
                        "False, 'shape': (341479, 100), }"));
}

TEST(Npy, RefusesWhatIsCutShort) {
    const std::string text =
        file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
    for (std::size_t length = 0; length < text.size(); ++length) {
        // A heap block of exactly that size: the address sanitizer sees any byte read behind it.
        const std::vector<char> exact(text.begin(),
                                      text.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_FALSE(parse_header({exact.data(), exact.size()}, "a.npy")) << length;
        EXPECT_EQ(is_npy({exact.data(), exact.size()}), length >= 6);
    }
}

TEST(Npy, RefusesWithARemedyWhatItCannotUse) {
    expect_refused("1 2 3\n", ErrorCode::damaged, "does not start with the magic bytes");
    expect_refused(file_with("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }"),
                   ErrorCode::unsupported, "numpy.ascontiguousarray");
    expect_refused(file_with("{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }"),
                   ErrorCode::unsupported, "newbyteorder('<')");
    expect_refused(file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 4),
                   ErrorCode::damaged, "version is 4");
    for (const char* dictionary :
         {"", "{}", "[]", "{'descr': '<f8', 'fortran_order': False, }",
          "{'descr': '<f8', 'shape': (2, 3), }",
          "{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 3), }",
          "{'descr': '<f8', 'fortran_order': False, 'shape': (2 3), }",
          "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, 3), }",
          "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 18446744073709551616), }",
          "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
          "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } x",
          "{'descr': '<f8, 'fortran_order': False, 'shape': (2,), }",
          "{'descr': [[, 'fortran_order': False, 'shape': (2,), }", "\x01\x02\xff"}) {
        expect_refused(file_with(dictionary), ErrorCode::damaged, "its header is");
    }
    expect_refused(
        file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
        ErrorCode::damaged, "elements");
    // 2^61 numbers of 8 bytes wrap to 0.
    expect_refused(
        file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }"),
        ErrorCode::damaged, "elements");
    expect_refused(file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }" +
                                 std::string(70000, ' '),
                             2),
                   ErrorCode::damaged, "bytes");
}

}  // namespace
}  // namespace gloved::npy
