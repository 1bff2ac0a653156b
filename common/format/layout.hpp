// Layout of a model's keys and values files: what Model (reader) and ModelWriter share. FORMAT.md
// beside this file specifies it.
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

/// Number of a row, from 0. The rows are the words, sorted by their bytes: row r is line r of the
/// keys file and element r of every section.
using Row = std::uint32_t;

inline constexpr const char* kKeysFile = "keys";
inline constexpr const char* kValuesFile = "values";
inline constexpr const char* kReportFile = "report.json";
/// The first bytes of every report. The rest of the name of the program that made the model
/// follows.
inline constexpr std::string_view kReportBeginning = "{\n  \"tool\": \"gloved-";

/// First bytes of a values file. As PNG's signature, they reveal each common way to damage a file
/// in transfer: a byte over 0x7F (7-bit channels), CR LF (newline conversion), 0x1A (DOS end of
/// file), LF (the reverse conversion).
inline constexpr std::array<unsigned char, 8> kMagic = {0x8E, 'G',  'L',  'V',
                                                        '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kSectionAlignment = 4096;
inline constexpr std::size_t kMaxSections = 32;
inline constexpr std::size_t kMaxSectionName = 23;
inline constexpr std::uint32_t kMaxDim = 4096;
/// Row numbers and ranks are uint32, from 0. 0xFFFFFFFF is none of them, and can mean «none».
inline constexpr std::uint64_t kMaxRows = 0xFFFFFFFE;

/// Names of the sections that every values file has.
inline constexpr std::string_view kNorms = "norms";
inline constexpr std::string_view kVectors = "vectors";
inline constexpr std::string_view kRanks = "ranks";

// Files are little-endian and read in place.
static_assert(std::endian::native == std::endian::little);

/// `offset`, or the next multiple of kSectionAlignment.
constexpr std::uint64_t aligned(std::uint64_t offset) {
    return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

/// Element type of a section.
enum class ElementType : std::uint32_t { bytes = 0, float32 = 1, float64 = 2, uint32 = 3 };

/// Name of an element type as in FORMAT.md; "unknown" for an undefined value.
std::string_view element_type_name(ElementType type);

/// An entry of the section table: an array in the values file, with one element or vector per row.
struct Section {
    std::string name;
    ElementType type = ElementType::bytes;
    std::uint64_t offset = 0;    ///< in the file
    std::uint64_t bytes = 0;     ///< size
    std::uint64_t checksum = 0;  ///< XXH3-64 of its content
};

/// The content of a values file's first 4096 bytes.
struct Header {
    std::uint64_t rows = 0;        ///< words of the model
    std::uint32_t dim = 0;         ///< numbers per vector
    std::uint64_t generation = 0;  ///< see compute_generation
    std::uint64_t keys_bytes = 0;  ///< size of the keys file
    std::uint64_t keys_checksum = 0;
    std::uint64_t file_bytes = 0;  ///< size of the values file
    std::vector<Section> sections;

    /// The section called `name`, or nullptr.
    const Section* find(std::string_view name) const;
};

/// Encodes the header and adds its checksum. The caller sets all fields, `generation` too, to
/// values that `decode_header` would accept; this is not checked.
std::array<std::byte, kHeaderBytes> encode_header(const Header& header);

/// Decodes a header and checks everything that needs no content of sections: magic, version, header
/// checksum, limits, generation. Also that the sections kNorms, kVectors and kRanks exist with the
/// sizes that rows and dim imply, and that all sections are aligned, in order, not overlapping, and
/// inside `file_bytes`. `bytes` may continue after the header. Errors: damaged or unsupported; the
/// caller adds the path to the message.
Result<Header> decode_header(std::span<const std::byte> bytes);

/// Computes the generation of a model: XXH3-64 over rows, dim, the size and checksum of the keys
/// file, and the checksums of the three required sections. Equal content has an equal generation,
/// whatever made it.
std::uint64_t compute_generation(const Header& header);

/// The XXH3-64 of `bytes`, with seed 0.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// Computes the same checksum of bytes that come in pieces. Not safe for concurrent use.
class Checksum {
  public:
    Checksum();
    Checksum(Checksum&& other) noexcept;
    Checksum& operator=(Checksum&& other) noexcept;
    ~Checksum();
    /// Adds the next bytes.
    void update(std::span<const std::byte> bytes);
    /// The checksum of all bytes so far.
    std::uint64_t value() const;

  private:
    void* state_;
};

/// A generation or checksum as 16 hexadecimal digits: «0123456789abcdef».
std::string hex(std::uint64_t value);

}  // namespace gloved::format
