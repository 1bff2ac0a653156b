// Detects a source's format by its first bytes, never by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gloved::source {

/// The format of a source. `automatic` detects it; the others are believed.
enum class SourceFormat {
    automatic,
    glove,         ///< text: word v1 … vdim
    norms,         ///< text: word norm v1 … vdim, as the original project wrote it
    word2vec,      ///< text behind a line «rows dim»
    word2vec_bin,  ///< a line «rows dim», then records (record.hpp)
    fasttext,      ///< read as word2vec's text; its lines end in a blank, which is ignored
};

std::string_view name_of(SourceFormat format);
std::optional<SourceFormat> source_format_from(std::string_view name);

/// UTF-8's byte order mark, which some texts start with.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// How many of the source's first bytes detect() gets.
inline constexpr std::size_t kHeadBytes = 4 << 20;

struct Detected {
    SourceFormat format = SourceFormat::glove;  ///< never automatic
    std::size_t dim = 0;
    std::optional<std::uint64_t> header_rows;  ///< from a first line «rows dim»
    bool bom = false;                          ///< the source starts with UTF-8's byte order mark
    std::size_t body_offset = 0;               ///< of the first row: after mark and header line
};

/// Detects format and dim by the source's first bytes, `head`; `whole`: these are all bytes. A
/// `format` other than automatic and a `dim` other than 0 are believed. `packing` is
/// Input::compression(). Error: bad_source, without the source's name, for other content, or if the
/// content contradicts `format` or `dim`.
Result<Detected> detect(std::string_view head, bool whole, SourceFormat format, std::size_t dim,
                        std::string_view packing);

}  // namespace gloved::source
