// The wire format of replies: the daemon writes them as text or JSON, clients parse the status line
// of text. PROTOCOL.md beside this file specifies both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"

namespace gloved::wire {

/// The name of an error code in an ERR line, e.g. «bad_request». Codes that the wire does not have
/// (io and those after it) become «internal».
std::string_view code_name(ErrorCode code);

/// Words of a request, each as it was typed. In a status line they are quoted, with commas between;
/// in JSON an array.
struct WordsField {
    std::vector<std::string> words;
};
/// Pairs of words. In a status line "first":"second" with commas between; in JSON an array of
/// objects with two members, which have these names.
struct PairsField {
    std::string_view first_name;  ///< lives for ever
    std::string_view second_name;
    std::vector<std::pair<std::string, std::string>> pairs;
};

/// A field `key=value` of a status line; in JSON a member of the reply's object. In a status line a
/// text value contains no spaces. A number that is not finite is null in JSON.
struct StatusField {
    std::string key;
    std::variant<std::uint64_t, double, std::string, WordsField, PairsField> value;
};

/// Appends the head of an OK reply with `lines` lines: «OK n key=value …» and LF. In JSON, the
/// beginning of the object, up to «"results":[»; it names `verb`, but not `lines`.
void append_head(std::string& out, Form form, Verb verb, std::size_t lines,
                 const std::vector<StatusField>& fields = {});
/// Appends the end of an OK reply, after its lines: nothing; in JSON «]}» and LF.
void append_tail(std::string& out, Form form);
/// An OK reply without lines.
std::string empty_reply(Form form, Verb verb, const std::vector<StatusField>& fields = {});
/// An OK reply with the lines of `text`, which ends with LF; in JSON each is {"line": "…"}.
std::string lines_reply(Form form, Verb verb, std::string_view text);
/// An ERR reply: «ERR code message» and LF, the message as one line of valid UTF-8; in JSON an
/// object. `suggestions` are words of the model that an unknown word may stand for. They are added
/// to the message; in JSON also to the object, with the unknown word itself, error.subject.
std::string error_reply(Form form, const Error& error,
                        const std::vector<std::string>& suggestions = {});
/// Append an error_reply in two parts, for an unknown word too long to render at once. If
/// error_has_word, the caller appends error.subject as a JSON string between the two. Otherwise the
/// head is the whole reply, and the tail is empty.
void append_error_head(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions);
void append_error_tail(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions);
/// Whether an error_reply has the unknown word as a member of its own: in JSON, for unknown_word.
bool error_has_word(Form form, const Error& error);

/// Appends a score with 6 decimals; −0.000000 becomes 0.000000.
void append_score(std::string& out, double score);

/// `word` as a quoted token of a request, which parses back to exactly the same bytes.
std::string quote_word(std::string_view word);

/// A word of a request as it stands in the reply. In text, a word that contains a TAB, line end or
/// NUL is quoted (quote_word), since it would break the line. A word that begins with a quote is
/// quoted too, so that every word in quotes is a quoted one. In JSON, `word` itself.
std::string echoed_word(Form form, std::string_view word);

/// Appends the lines of a reply, each a row of columns. In text, TAB separates columns and LF ends
/// the line; in JSON a line is an object whose members are the columns. Column names are plain
/// ASCII; text replies do not show them. Between `begin` and `end`, call one function per column.
class LineWriter {
  public:
    /// Appends to `out`, which must live as long as it is used. `first`: whether the next line is
    /// the reply's first, which has no comma before it in JSON.
    LineWriter(std::string& out, Form form, bool first)
        : out_(&out), form_(form), first_line_(first) {}
    /// For a reply that is written in pieces, to several strings: call `write_to` before each
    /// piece. A piece may end anywhere in a line.
    explicit LineWriter(Form form) : form_(form) {}
    void write_to(std::string& out) { out_ = &out; }

    /// Begin and end a line.
    void begin();
    void end();
    /// A column with a key of the model or gloved's own text, unchanged. If it contains a TAB, a
    /// line end or a NUL, which it should not, it is escaped as in `message`.
    void text(std::string_view name, std::string_view text);
    /// A column with a message: control bytes and invalid UTF-8 become \xHH.
    void message(std::string_view name, std::string_view message);
    /// A column as `text`, in several calls: appends from byte `from` of `text` on, at least one
    /// character, until the output string has `enough_bytes` in all. Returns the `from` of the next
    /// call; text.size() means that the column is complete.
    std::size_t text_part(std::string_view name, std::string_view text, std::size_t from,
                          std::size_t enough_bytes);
    /// A score with 6 decimals; in JSON with the fewest digits that read back to the same float64.
    void score(std::string_view name, double value);
    /// A whole number.
    void count(std::string_view name, std::uint64_t value);
    /// 0 or 1; in JSON false or true.
    void flag(std::string_view name, bool value);
    /// Begins a list of numbers: in text each is a column, in JSON all are one array.
    void begin_list(std::string_view name);
    /// A number of the list, written as by `score`.
    void list_score(double value);
    /// A number of the list, with the fewest digits that read back to the same float32; in JSON
    /// null if not finite.
    void list_float(float value);
    void end_list();
    /// Begins a column of base64; `base64` appends to it.
    void begin_base64(std::string_view name);
    /// The next bytes of the column. Before the last ones, a multiple of kBase64GroupBytes.
    void base64(std::span<const std::byte> bytes);
    void end_base64();

  private:
    void begin_column(std::string_view name);
    void begin_element();
    void put_score(double value);

    std::string* out_ = nullptr;
    Form form_;
    bool first_line_ = true;
    bool first_column_ = true;
    bool first_in_list_ = true;
};

/// A parsed status line: OK or ERR, what is after it, and the number of lines that follow.
struct StatusLine {
    bool ok = false;
    std::size_t lines = 0;                                    ///< of an OK: how many lines follow
    std::vector<std::pair<std::string, std::string>> fields;  ///< of an OK
    std::string code;                                         ///< of an ERR
    std::string message;                                      ///< of an ERR

    /// Value of a field, or an empty string.
    std::string_view field(std::string_view key) const;
};

/// Parses a status line without its LF. Error: bad_request, if it is not of this protocol.
Result<StatusLine> parse_status_line(std::string_view line);

}  // namespace gloved::wire
