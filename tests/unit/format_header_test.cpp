// Names in a header whose checksums are right.
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "common/format/frame.hpp"
#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::format {
namespace {

constexpr std::size_t kAtSections = 64;
constexpr std::size_t kSectionEntryBytes = 64;

Header header_with_an_optional_section() {
    Header header;
    header.rows = 2;
    header.dim = 3;
    header.keys_bytes = 4;
    header.sections = {{std::string(kNorms), ElementType::float64, 4096, 16, 0},
                       {std::string(kVectors), ElementType::float32, 8192, 24, 0},
                       {std::string(kRanks), ElementType::uint32, 12288, 8, 0},
                       {"optional", ElementType::bytes, 16384, 0, 0}};
    header.file_bytes = 16384;
    header.generation = compute_generation(header);
    return header;
}

/// The header with the optional section's name replaced, and its own checksum made right again.
Result<Header> decode_with_name(std::string_view name) {
    HeaderBytes bytes = encode_header(header_with_an_optional_section());
    auto* const field = bytes.data() + kAtSections + 3 * kSectionEntryBytes;
    std::memset(field, 0, kMaxSectionName + 1);
    std::memcpy(field, name.data(), name.size());
    seal_header(bytes);
    return decode_header(bytes);
}

TEST(SectionName, IsOfLettersDigitsAndThreeSigns) {
    for (const std::string_view name :
         {"optional", "a", "0", "x.y_z-9", "abcdefghijklmnopqrstuvw"}) {
        const auto header = decode_with_name(name);
        ASSERT_TRUE(header) << name << ": " << header.error().message;
        EXPECT_NE(header->find(name), nullptr);
    }
}

TEST(SectionName, WithAnyOtherByteIsRefusedInOneLineOfText) {
    for (const std::string_view name :
         {"", "a b", "A", "x\nok", "\x1B[2J", "\xFF", "é", "a/b", "abcdefghijklmnopqrstuvwx"}) {
        const auto header = decode_with_name(name);
        ASSERT_FALSE(header) << name;
        EXPECT_EQ(header.error().code, ErrorCode::damaged);
        EXPECT_NE(header.error().message.find("the name of section 3"), std::string::npos)
            << header.error().message;
        EXPECT_EQ(header.error().message.find_first_of("\n\x1B\xFF"), std::string::npos)
            << header.error().message;
    }
}

}  // namespace
}  // namespace gloved::format
