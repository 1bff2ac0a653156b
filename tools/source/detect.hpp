// Detects the format of a source, a download, by its first bytes, never by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "tools/source/array_layout.hpp"

namespace gloved::source {

/// The format of a source. `automatic` asks detect() to find it; detect() believes the others.
enum class SourceFormat {
    automatic,
    glove,     ///< text: word v1 … vdim
    norms,     ///< text: word norm v1 … vdim, as the program that gloved descends from wrote it
    word2vec,  ///< a line «rows dim», then text as in glove
    word2vec_bin,  ///< a line «rows dim», then records (record.hpp)
    fasttext,      ///< read as word2vec's text; its lines end in a blank, which is ignored
    npy,           ///< a NumPy array, with its words in a file of their own (token_list.hpp)
    safetensors,   ///< a tensor of several, with its words in a file of their own
};

/// Whether the source is an array, without words.
inline bool is_array(SourceFormat format) {
    return format == SourceFormat::npy || format == SourceFormat::safetensors;
}
/// Whether the source is text, with a line for each word.
inline bool is_text(SourceFormat format) {
    return format != SourceFormat::word2vec_bin && !is_array(format);
}

/// The name of a format in options and reports, e.g. «word2vec-bin»; source_format_from is the
/// inverse, nullopt for another name.
std::string_view name_of(SourceFormat format);
std::optional<SourceFormat> source_format_from(std::string_view name);

/// How many of the source's first bytes are passed to detect().
inline constexpr std::size_t kHeadBytes = 4 << 20;

/// What detect() found.
struct Detected {
    SourceFormat format = SourceFormat::glove;  ///< never automatic
    std::size_t dim = 0;                        ///< numbers per word
    /// A header or the user gives `dim`, and most lines agree: what stands before the last `dim`
    /// fields is the word, even if it ends in a number.
    bool dim_is_certain = false;
    /// Rows by a first line «rows dim» or an array's header, if there is one.
    std::optional<std::uint64_t> header_rows;
    bool bom = false;             ///< the source starts with kByteOrderMark
    std::size_t body_offset = 0;  ///< where the first row begins; 0 for an array, whose layout has
                                  ///< the place
    ArrayLayout layout;           ///< of binary data; of records only `dim` is set
};

/// Detects format and dim by the source's first bytes, `head`; `whole`: the source has no others. A
/// `format` other than automatic and a `dim` other than 0 are what the user says, and are believed.
/// `packing`, Input::compression(), is for messages. `tensor`: see find_array. Error: bad_source,
/// for content in none of the formats, or if the content contradicts `format` or `dim`; the caller
/// adds the source's name.
Result<Detected> detect(std::string_view head, bool whole, SourceFormat format, std::size_t dim,
                        std::string_view packing, const std::string& tensor = {});

}  // namespace gloved::source
