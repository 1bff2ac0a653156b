// Replies as text or JSON: made by the daemon, read by clients.
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

/// The wire's name of an error code: «bad_request». Codes that are not of the wire's closed list
/// become «internal».
std::string_view code_name(ErrorCode code);

/// A key of a status line with its value; text values hold no spaces. A number that is not finite
/// is null in JSON.
struct StatusField {
    std::string key;
    std::variant<std::uint64_t, double, std::string> value;
};

/// Appends what stands before a reply's lines: «OK n key=value …» with its LF; in JSON the object
/// up to «"results":[».
void append_head(std::string& out, Form form, Verb verb, std::size_t lines,
                 const std::vector<StatusField>& fields = {});
/// Appends what stands behind them: nothing; in JSON «]}» and LF.
void append_tail(std::string& out, Form form);
/// An OK without lines.
std::string empty_reply(Form form, Verb verb, const std::vector<StatusField>& fields = {});
/// An OK whose lines are those of `text`, which ends with LF; in JSON each is a «line».
std::string lines_reply(Form form, Verb verb, std::string_view text);
/// «ERR code message» with its LF, the message as one line of valid UTF-8; in JSON the same as an
/// object. An unknown word's object has the word and `suggestions`; in text these are part of the
/// message.
std::string error_reply(Form form, const Error& error,
                        const std::vector<std::string>& suggestions = {});
/// Appends what stands before the unknown word in that reply, and behind it. The word is a JSON
/// string; an error without one, and every error in text, is whole before it.
void append_error_head(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions);
void append_error_tail(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions);
/// Whether that reply has the unknown word as a member of its own.
bool error_has_word(Form form, const Error& error);

/// Appends a score with 6 decimals; what rounds to −0.000000 is 0.000000.
void append_score(std::string& out, double score);

/// `word` as wire syntax that parses back to exactly it, always quoted.
std::string quote_word(std::string_view word);

/// A word as it was asked for, to be written as a column. In text, a word with a TAB, a line end or
/// a NUL in it (it came as \xHH) is quoted, because it would tear the line apart. A word that
/// begins with a quote is quoted too, to tell the two apart.
std::string echoed_word(Form form, std::string_view word);

/// Appends the lines of a reply, each a row of columns: in text TAB between them and LF at the end;
/// in JSON an object a line, its members the columns' names. Names are plain ASCII. The string that
/// it appends to outlives it, or is replaced with `write_to`.
class LineWriter {
  public:
    /// `first`: whether the next line is the reply's first.
    LineWriter(std::string& out, Form form, bool first)
        : out_(&out), form_(form), first_line_(first) {}
    /// Of a whole reply, written in pieces: `write_to` is called before each piece. A piece may end
    /// anywhere in a line.
    explicit LineWriter(Form form) : form_(form) {}
    void write_to(std::string& out) { out_ = &out; }

    void begin();
    void end();
    /// A key of the model, or text of our own: as it stands. Neither has a TAB, a line end or a NUL
    /// in it; should one have, it is shown as a message is, and tears no line.
    void text(std::string_view name, std::string_view text);
    /// Text for people, as one line of valid UTF-8: control bytes, and bytes that are no UTF-8, as
    /// \xHH.
    void message(std::string_view name, std::string_view message);
    /// As `text`, but stops when the output has `enough_bytes`: appends from byte `from` on, a
    /// character at least, and returns where to go on. All is written when that is the end of
    /// `text`.
    std::size_t text_part(std::string_view name, std::string_view text, std::size_t from,
                          std::size_t enough_bytes);
    /// With 6 decimals in text, whole in JSON: the shortest decimals that read back to it.
    void score(std::string_view name, double value);
    void count(std::string_view name, std::uint64_t value);
    /// 0 or 1, false or true.
    void flag(std::string_view name, bool value);
    /// Several numbers: columns each in text, one array in JSON.
    void begin_list(std::string_view name);
    void list_score(double value);
    /// The shortest decimals that read back to the same float32; what is not finite, null in JSON.
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

/// A status line, read.
struct StatusLine {
    bool ok = false;
    std::size_t lines = 0;                                    ///< of an OK: how many lines follow
    std::vector<std::pair<std::string, std::string>> fields;  ///< of an OK
    std::string code;                                         ///< of an ERR
    std::string message;                                      ///< of an ERR

    /// The value of a field, or an empty string.
    std::string_view field(std::string_view key) const;
};

/// Reads a status line without its LF. Error: bad_request, when the peer does not speak this
/// protocol.
Result<StatusLine> parse_status_line(std::string_view line);

}  // namespace gloved::wire
