// Layout of a model's keys and values files, shared by reader and writer. FORMAT.md beside this
// file specifies it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::format {

/// A word's index in byte order: line `row` of the keys file, row `row` of every section.
using Row = std::uint32_t;

inline constexpr const char* kKeysFile = "keys";
inline constexpr const char* kValuesFile = "values";
inline constexpr const char* kReportFile = "report.json";
/// Every report begins so; the name of the program that made the model follows.
inline constexpr std::string_view kReportBeginning = "{\n  \"tool\": \"gloved-";

/// Like PNG's signature, which reveals each common way to damage a file in transfer: a byte over
/// 0x7F (7-bit channels), CR LF (newline conversion), 0x1A (DOS end of file), LF (the reverse
/// conversion).
inline constexpr std::array<unsigned char, 8> kMagic = {0x8E, 'G',  'L',  'V',
                                                        '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kSectionAlignment = 4096;
inline constexpr std::size_t kMaxSections = 32;
inline constexpr std::size_t kMaxSectionName = 23;
inline constexpr std::uint32_t kMaxDim = 4096;
/// Rows and ranks are uint32; the last value means «none».
inline constexpr std::uint64_t kMaxRows = 0xFFFFFFFE;

inline constexpr std::string_view kNorms = "norms";
inline constexpr std::string_view kVectors = "vectors";
inline constexpr std::string_view kRanks = "ranks";

// Files are little-endian and read in place.
static_assert(std::endian::native == std::endian::little);

/// Element type of a section.
enum class ElementType : std::uint32_t { bytes = 0, float32 = 1, float64 = 2, uint32 = 3 };

/// Name of an element type as in FORMAT.md; "unknown" for an undefined value.
std::string_view element_type_name(ElementType type);

/// An entry of the section table. `checksum` is XXH3-64 of the section's `bytes` bytes.
struct Section {
    std::string name;
    ElementType type = ElementType::bytes;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
};

/// The content of a values file's first 4096 bytes.
struct Header {
    std::uint64_t rows = 0;
    std::uint32_t dim = 0;
    std::uint64_t generation = 0;
    std::uint64_t keys_bytes = 0;
    std::uint64_t keys_checksum = 0;
    std::uint64_t file_bytes = 0;
    std::vector<Section> sections;

    /// The section called `name`, or null.
    const Section* find(std::string_view name) const;
};

/// Encodes the header, including its checksum. `header` must be one that `decode_header` accepts.
std::array<std::byte, kHeaderBytes> encode_header(const Header& header);

/// Decodes a header and checks it as far as possible without the sections: magic, version, header
/// checksum, limits; that the required sections exist with the sizes that rows and dim imply,
/// aligned, in order, not overlapping, inside `file_bytes`. Errors: damaged or unsupported, without
/// the path, which the caller adds.
Result<Header> decode_header(std::span<const std::byte> bytes);

/// The generation of a header's content: XXH3-64 of shape and checksums. Equal content has an equal
/// generation however it was made.
std::uint64_t compute_generation(const Header& header);

/// XXH3-64 with seed 0.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// XXH3-64 of bytes in pieces. Not safe for concurrent use.
class Checksum {
  public:
    Checksum();
    Checksum(Checksum&& other) noexcept;
    Checksum& operator=(Checksum&& other) noexcept;
    ~Checksum();
    void update(std::span<const std::byte> bytes);
    std::uint64_t value() const;

  private:
    void* state_;
};

/// A generation or checksum as text: «0123456789abcdef».
std::string hex(std::uint64_t value);

}  // namespace gloved::format
