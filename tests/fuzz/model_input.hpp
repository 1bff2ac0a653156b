// How the bytes of a fuzz input become the files of a model.
//
//     byte 0       what to repair, see Repair
//     byte 1       n, how many section entries follow the fixed fields, modulo kMaxSections + 2
//     64 + 64 n    the start of the header; the rest of its 4096 bytes is zero
//     64           with kWithPlanes: the start of the header of the planes file, likewise
//     the rest     the keys file
//
// A header is nearly all zeros and guarded by checksums: written out as it is, mutations would be
// wasted on the zeros and end at the first check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/format/layout.hpp"

namespace gloved::fuzz {

/// Bits of byte 0: what is made right after the mutation, so that it gets past the checks that come
/// first.
enum Repair : std::uint8_t {
    kRepairNothing = 0,
    kRepairKeys = 1,        ///< the header's size and checksum of the keys file
    kRepairGeneration = 2,  ///< the generation
    kRepairChecksum = 4,    ///< the header's own checksum
    kRepairAll = 7,
    kOneByteLess = 8,    ///< and the values file is a byte shorter than its header says
    kWithPlanes = 16,    ///< there is a planes file
    kRepairPlanes = 32,  ///< its header's generation and checksum
    kPlanesOneByteLess = 64,
};

// Offsets of the fixed fields and of a section entry's, from FORMAT.md. If they drift, fuzz_model
// does not start.
inline constexpr std::size_t kFixedBytes = 64;
inline constexpr std::size_t kEntryBytes = 64;
inline constexpr std::size_t kAtRows = 16;
inline constexpr std::size_t kAtDim = 24;
inline constexpr std::size_t kAtSectionCount = 28;
inline constexpr std::size_t kAtGeneration = 32;
inline constexpr std::size_t kAtKeysBytes = 40;
inline constexpr std::size_t kAtKeysChecksum = 48;
inline constexpr std::size_t kAtFileBytes = 56;
inline constexpr std::size_t kAtEntryChecksum = 48;
inline constexpr std::size_t kAtHeaderChecksum = format::kHeaderBytes - 8;
// The header of a planes file has its generation, its size and its checksum at the same offsets.
inline constexpr std::size_t kPlanesBytes = 64;

/// A small valid header for `rows` keys; its checksums of keys and sections are zero.
inline format::Header seed_header(std::uint64_t rows, std::uint32_t dim) {
    format::Header header;
    header.rows = rows;
    header.dim = dim;
    std::uint64_t offset = format::kHeaderBytes;
    const auto add = [&](std::string_view name, format::ElementType type, std::uint64_t bytes) {
        header.sections.push_back({std::string(name), type, offset, bytes, 0});
        header.file_bytes = offset + bytes;
        offset = (header.file_bytes + format::kSectionAlignment - 1) / format::kSectionAlignment *
                 format::kSectionAlignment;
    };
    add(format::kNorms, format::ElementType::float64, rows * sizeof(double));
    add(format::kVectors, format::ElementType::float32, rows * dim * sizeof(float));
    add(format::kRanks, format::ElementType::uint32, rows * sizeof(std::uint32_t));
    add("plane", format::ElementType::bytes, 100);
    header.generation = format::compute_generation(header);
    return header;
}

}  // namespace gloved::fuzz
