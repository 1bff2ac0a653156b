#include "common/format/layout.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/frame.hpp"
#include "common/quoting.hpp"

namespace gloved::format {
namespace {

constexpr FileKind kValues = {"values", kMagic, kVersion, "format", "; convert the download again"};

// Offsets of the fields that only values headers have; FORMAT.md has the same table.
constexpr std::size_t kAtSectionCount = 28;
constexpr std::size_t kAtKeysBytes = 40;
constexpr std::size_t kAtKeysChecksum = 48;
constexpr std::size_t kAtSections = 64;
constexpr std::size_t kSectionEntryBytes = 64;
constexpr std::size_t kAtEntryType = 24;
constexpr std::size_t kAtEntryOffset = 32;
constexpr std::size_t kAtEntryBytes = 40;
constexpr std::size_t kAtEntryChecksum = 48;
static_assert(kAtSections + kMaxSections * kSectionEntryBytes <=
              kHeaderBytes - sizeof(std::uint64_t));
static_assert(kMaxSectionName < kAtEntryType);

/// The required size of section `name` in a model of that shape; 0 if any size is valid. Cannot
/// overflow: rows < 2^32 and dim <= 4096.
std::uint64_t required_bytes(std::string_view name, std::uint64_t rows, std::uint32_t dim) {
    if (name == kNorms) return rows * sizeof(double);
    if (name == kVectors) return rows * dim * sizeof(float);
    if (name == kRanks) return rows * sizeof(std::uint32_t);
    return 0;
}

ElementType required_type(std::string_view name) {
    if (name == kNorms) return ElementType::float64;
    if (name == kVectors) return ElementType::float32;
    return ElementType::uint32;
}

/// Names appear unescaped in messages and replies, so no byte may need quoting.
bool is_section_name(std::string_view name) {
    return !name.empty() && name.size() <= kMaxSectionName && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    });
}

Result<std::vector<Section>> decode_sections(std::span<const std::byte> bytes,
                                             const Header& header) {
    const auto count = get<std::uint32_t>(bytes, kAtSectionCount);
    if (count > kMaxSections)
        return damaged("header lists {} sections, at most {} fit", count, kMaxSections);
    std::vector<Section> sections;
    std::uint64_t free_from = kHeaderBytes;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto entry = bytes.subspan(kAtSections + i * kSectionEntryBytes, kSectionEntryBytes);
        const auto* text = reinterpret_cast<const char*>(entry.data());
        const std::string_view name(text, ::strnlen(text, kMaxSectionName + 1));
        if (!is_section_name(name)) {
            return damaged("the name of section {} is {}, not 1 to {} of the bytes a-z 0-9 . _ -",
                           i, printable(name), kMaxSectionName);
        }
        Section section;
        section.name = name;
        section.type = static_cast<ElementType>(get<std::uint32_t>(entry, kAtEntryType));
        section.offset = get<std::uint64_t>(entry, kAtEntryOffset);
        section.bytes = get<std::uint64_t>(entry, kAtEntryBytes);
        section.checksum = get<std::uint64_t>(entry, kAtEntryChecksum);
        if (section.offset % kSectionAlignment != 0 || section.offset < free_from) {
            return damaged("section '{}' starts at byte {}, which is not a free multiple of {}",
                           section.name, section.offset, kSectionAlignment);
        }
        if (section.offset > header.file_bytes ||
            section.bytes > header.file_bytes - section.offset) {
            return damaged("section '{}' ({} bytes at {}) runs past the end of the file ({} bytes)",
                           section.name, section.bytes, section.offset, header.file_bytes);
        }
        free_from = section.offset + section.bytes;
        if (std::ranges::find(sections, section.name, &Section::name) != sections.end()) {
            return damaged("section '{}' is listed twice", section.name);
        }
        sections.push_back(std::move(section));
    }
    return sections;
}

}  // namespace

std::string_view element_type_name(ElementType type) {
    switch (type) {
        case ElementType::bytes:
            return "bytes";
        case ElementType::float32:
            return "float32";
        case ElementType::float64:
            return "float64";
        case ElementType::uint32:
            return "uint32";
    }
    return "unknown";
}

const Section* Header::find(std::string_view name) const {
    const auto found = std::ranges::find(sections, name, &Section::name);
    return found == sections.end() ? nullptr : &*found;
}

std::array<std::byte, kHeaderBytes> encode_header(const Header& header) {
    assert(header.sections.size() <= kMaxSections);
    HeaderBytes bytes =
        begin_header(kValues, {header.rows, header.dim, header.generation, header.file_bytes});
    put(bytes, kAtSectionCount, static_cast<std::uint32_t>(header.sections.size()));
    put(bytes, kAtKeysBytes, header.keys_bytes);
    put(bytes, kAtKeysChecksum, header.keys_checksum);
    for (std::size_t i = 0; i < header.sections.size(); ++i) {
        const Section& section = header.sections[i];
        assert(is_section_name(section.name));
        const auto entry =
            std::span(bytes).subspan(kAtSections + i * kSectionEntryBytes, kSectionEntryBytes);
        std::memcpy(entry.data(), section.name.data(), section.name.size());
        put(entry, kAtEntryType, static_cast<std::uint32_t>(section.type));
        put(entry, kAtEntryOffset, section.offset);
        put(entry, kAtEntryBytes, section.bytes);
        put(entry, kAtEntryChecksum, section.checksum);
    }
    seal_header(bytes);
    return bytes;
}

Result<Header> decode_header(std::span<const std::byte> bytes) {
    const auto frame = open_header(kValues, bytes);
    if (!frame) return frame.error();
    Header header;
    header.rows = frame->rows;
    header.dim = frame->dim;
    header.generation = frame->generation;
    header.file_bytes = frame->file_bytes;
    header.keys_bytes = get<std::uint64_t>(bytes, kAtKeysBytes);
    header.keys_checksum = get<std::uint64_t>(bytes, kAtKeysChecksum);

    auto sections = decode_sections(bytes, header);
    if (!sections) return sections.error();
    header.sections = *std::move(sections);
    for (const std::string_view name : {kNorms, kVectors, kRanks}) {
        const Section* section = header.find(name);
        if (section == nullptr) return damaged("section '{}' is missing", name);
        const auto wanted = required_bytes(name, header.rows, header.dim);
        if (section->bytes != wanted || section->type != required_type(name)) {
            return damaged("section '{}' holds {} bytes of {}; {} × {} needs {} bytes of {}", name,
                           section->bytes, element_type_name(section->type), header.rows,
                           header.dim, wanted, element_type_name(required_type(name)));
        }
    }
    const auto generation = compute_generation(header);
    if (generation != header.generation) {
        return damaged("the generation is {}, the content's is {}", hex(header.generation),
                       hex(generation));
    }
    return header;
}

std::uint64_t compute_generation(const Header& header) {
    std::vector<std::uint64_t> facts = {header.rows, header.dim, header.keys_bytes,
                                        header.keys_checksum};
    for (const std::string_view name : {kNorms, kVectors, kRanks}) {
        const Section* section = header.find(name);
        facts.push_back(section == nullptr ? 0 : section->checksum);
    }
    return checksum(std::as_bytes(std::span(facts)));
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

Checksum::Checksum() : state_(XXH3_createState()) {
    if (state_ == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}
Checksum::Checksum(Checksum&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
Checksum& Checksum::operator=(Checksum&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}
Checksum::~Checksum() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void Checksum::update(std::span<const std::byte> bytes) {
    XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}
std::uint64_t Checksum::value() const {
    return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_));
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace gloved::format
