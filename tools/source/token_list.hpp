// TokenList: the words of an array's rows, one after the other, from a file of their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/input_file.hpp"
#include "common/result.hpp"
#include "common/text_lines.hpp"
#include "tools/source/byte_reader.hpp"

namespace gloved::source {

/// Maximum size of a tokenizer.json.
inline constexpr std::size_t kMaxTokenizerBytes = std::size_t{64} << 20;

/// Reads text with a word a line in bounded memory, or a whole tokenizer.json of Hugging Face,
/// whose tokens are kept. Not safe for concurrent use.
class TokenList {
  public:
    /// Opens `path`, or stdin for «-», for an array of `rows` rows. A file that begins with `{` and
    /// a key in double quotes with a colon is a tokenizer.json. `stop` must outlive the list.
    /// Errors: those of InputFile and TextLines; bad_source, for a tokenizer.json that is damaged
    /// or too large, or whose ids are not 0 to rows - 1, once each. Messages name the file.
    static Result<std::unique_ptr<TokenList>> open(const std::string& path, std::uint64_t rows,
                                                   const std::atomic<bool>& stop);

    /// The word of the next row, also if it is empty; call it `rows` times at most. The view is
    /// valid until the next call. Errors: those of TextLines; bad_source, if there are fewer words.
    Result<std::string_view> next();
    /// Checks that there are no more words than rows, after the last. Error: bad_source.
    Status check_end();
    /// What to tell the user about the tokens; empty if there is nothing.
    const std::string& note() const { return note_; }

  private:
    /// A token in `text_`.
    struct Token {
        std::uint64_t id;
        std::size_t begin;
        std::size_t bytes;
    };
    class JsonReader;

    TokenList(InputFile file, std::uint64_t rows, const std::atomic<bool>& stop);
    Status read_tokens();
    Status check_ids();
    void note_marks();
    std::string_view text_of(const Token& token) const {
        return std::string_view(text_).substr(token.begin, token.bytes);
    }
    Error wrong_count(std::uint64_t words) const;

    FileReader file_;
    std::uint64_t rows_;
    TextLines lines_;
    bool has_tokens_ = false;
    std::string text_;           // of all tokens
    std::vector<Token> tokens_;  // by id, once open
    std::size_t next_token_ = 0;
    std::string note_;
};

}  // namespace gloved::source
