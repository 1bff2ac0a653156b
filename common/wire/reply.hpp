// Writes replies as text or JSON (daemon), and parses status lines (clients).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"

namespace gloved::wire {

/// Wire name of an error code: «bad_request». Codes outside the wire's closed list become
/// «internal».
std::string_view code_name(ErrorCode code);

/// A field of a status line. Text values contain no spaces. A number that is not finite is null in
/// JSON.
struct StatusField {
    std::string key;
    std::variant<std::uint64_t, double, std::string> value;
};

/// Appends the head of a reply: «OK n key=value …» and LF; in JSON the object up to «"results":[».
void append_head(std::string& out, Form form, Verb verb, std::size_t lines,
                 const std::vector<StatusField>& fields = {});
/// Appends the end of a reply: nothing; in JSON «]}» and LF.
void append_tail(std::string& out, Form form);
/// An OK reply without lines.
std::string empty_reply(Form form, Verb verb, const std::vector<StatusField>& fields = {});
/// An OK reply with the lines of `text`, which ends with LF; in JSON each is a «line».
std::string lines_reply(Form form, Verb verb, std::string_view text);
/// «ERR code message» and LF, the message as one line of valid UTF-8; in JSON an object. For an
/// unknown word the object has the word and `suggestions`; in text the message has them.
std::string error_reply(Form form, const Error& error,
                        const std::vector<std::string>& suggestions = {});
/// Appends the parts of an error reply before and after its unknown word, which is a JSON string.
/// An error without a word, and every error in text, is complete in the head.
void append_error_head(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions);
void append_error_tail(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions);
/// Whether that reply has the unknown word as a member.
bool error_has_word(Form form, const Error& error);

/// Appends a score with 6 decimals; −0.000000 becomes 0.000000.
void append_score(std::string& out, double score);

/// `word` in quoted wire syntax, which parses back to exactly it.
std::string quote_word(std::string_view word);

/// The word of a request as a column of its reply. In text, a word with TAB, line end or NUL (sent
/// as \xHH) is quoted, since it would break the line. A word that begins with a quote is quoted
/// too, to tell the two apart.
std::string echoed_word(Form form, std::string_view word);

/// Appends the lines of a reply, each a row of columns. In text, TAB separates columns and LF ends
/// the line; in JSON a line is an object whose members are the columns. Column names are plain
/// ASCII. The output string outlives the writer, or is replaced with `write_to`.
class LineWriter {
  public:
    /// `first`: whether the next line is the reply's first.
    LineWriter(std::string& out, Form form, bool first)
        : out_(&out), form_(form), first_line_(first) {}
    /// For a whole reply, written in pieces: call `write_to` before each piece. A piece may end
    /// anywhere in a line.
    explicit LineWriter(Form form) : form_(form) {}
    void write_to(std::string& out) { out_ = &out; }

    void begin();
    void end();
    /// A key of the model or gloved's own text, unchanged. If it contains a TAB, a line end or a
    /// NUL, which it should not, it is escaped as in `message`.
    void text(std::string_view name, std::string_view text);
    /// A message as one line of valid UTF-8: control bytes and invalid UTF-8 become \xHH.
    void message(std::string_view name, std::string_view message);
    /// Like `text`, but stops when the output has `enough_bytes`: appends from byte `from` on, at
    /// least one character. Returns where to continue; the end of `text` means done.
    std::size_t text_part(std::string_view name, std::string_view text, std::size_t from,
                          std::size_t enough_bytes);
    /// In text with 6 decimals; in JSON with the fewest digits that read back to the same float64.
    void score(std::string_view name, double value);
    void count(std::string_view name, std::uint64_t value);
    /// In text 0 or 1; in JSON false or true.
    void flag(std::string_view name, bool value);
    /// Several numbers: a column each in text, one array in JSON.
    void begin_list(std::string_view name);
    void list_score(double value);
    /// The fewest digits that read back to the same float32; null in JSON if not finite.
    void list_float(float value);
    void end_list();

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

/// A parsed status line.
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
