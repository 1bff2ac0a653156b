#include "tools/source/token_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved::source {
namespace {

/// Enough to tell a tokenizer.json.
constexpr std::size_t kHeadBytes = 4096;

/// Whether a file that begins with `text` is a tokenizer.json.
bool is_json(std::string_view text) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    const auto take = [&](char c) {
        text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
        if (!text.starts_with(c)) return false;
        text.remove_prefix(1);
        return true;
    };
    if (!take('{') || !take('"')) return false;
    text.remove_prefix(std::min(text.find('"'), text.size()));
    return take('"') && take(':');
}

}  // namespace

/// Takes the tokens out of a tokenizer.json, and keeps nothing else: "model" has a "vocab", which
/// is an object token → id, or a list of [token, score] whose ids are their places; "added_tokens"
/// is a list of objects with id and content. A parser of nlohmann::json calls it.
class TokenList::JsonReader : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit JsonReader(TokenList& list) : list_(list) {}

    bool has_vocabulary() const { return has_vocabulary_; }
    const std::string& problem() const { return problem_; }

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t number) override {
        if (is_entry()) add(keys_[kEntry], number);
        if (is_added() && keys_[kEntry] == "id") id_ = number;
        return true;
    }
    bool string(string_t& text) override {
        if (is_in_vocabulary() && depth_ == kEntry + 1) add(text, places_++);
        if (is_added() && keys_[kEntry] == "content") content_ = std::move(text);
        return true;
    }
    bool key(string_t& name) override {
        if (depth_ <= kEntry) keys_[depth_] = std::move(name);
        return true;
    }
    bool start_object(std::size_t) override { return descend(); }
    bool start_array(std::size_t) override { return descend(); }
    bool end_array() override {
        --depth_;
        return true;
    }
    bool end_object() override {
        if (is_added() && id_ && content_) add(*content_, *id_);
        --depth_;
        return true;
    }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::detail::exception&) override {
        problem_ = fmt::format("is no JSON from byte {} on", position);
        return false;
    }

  private:
    /// The depth of a vocabulary's entries, and of what an added token consists of.
    static constexpr std::size_t kEntry = 3;
    static constexpr std::size_t kMaxDepth = 100;

    bool is_in_vocabulary() const { return keys_[1] == "model" && keys_[2] == "vocab"; }
    /// In an object token → id.
    bool is_entry() const {
        return is_in_vocabulary() && depth_ == kEntry && !keys_[kEntry].empty();
    }
    bool is_added() const { return keys_[1] == "added_tokens" && depth_ == kEntry; }
    bool descend() {
        // A list has no keys.
        if (++depth_ <= kEntry) keys_[depth_].clear();
        has_vocabulary_ |= is_in_vocabulary() && depth_ == kEntry;
        id_.reset();
        content_.reset();
        if (depth_ <= kMaxDepth) return true;
        problem_ = fmt::format("has more than {} levels of lists and objects", kMaxDepth);
        return false;
    }
    void add(std::string_view token, std::uint64_t id) {
        list_.tokens_.push_back({id, list_.text_.size(), token.size()});
        list_.text_ += token;
    }

    TokenList& list_;
    std::size_t depth_ = 0;
    std::array<std::string, kEntry + 1> keys_;  // by depth, of the value that is read
    bool has_vocabulary_ = false;
    std::uint64_t places_ = 0;  // in a list of tokens
    std::optional<std::uint64_t> id_;
    std::optional<std::string> content_;
    std::string problem_;
};

TokenList::TokenList(InputFile file, std::uint64_t rows, const std::atomic<bool>& stop)
    : file_(std::move(file), stop),
      rows_(rows),
      lines_(file_.name(), [this](std::span<char> buffer) { return file_.read(buffer); }) {}

Result<std::unique_ptr<TokenList>> TokenList::open(const std::string& path, std::uint64_t rows,
                                                   const std::atomic<bool>& stop) {
    auto file = InputFile::open(path, NoWriter::wait, &stop);
    if (!file) return file.error();
    std::unique_ptr<TokenList> list(new TokenList(*std::move(file), rows, stop));
    const auto head = list->file_.peek(kHeadBytes);
    if (!head) return head.error();
    if (!is_json(*head)) return list;
    list->has_tokens_ = true;
    if (Status read = list->read_tokens(); !read) return read.error();
    if (Status checked = list->check_ids(); !checked) return checked.error();
    list->note_marks();
    return list;
}

Status TokenList::read_tokens() {
    const auto refused = [&](std::string_view what) {
        return bad_source(
            "{}: {}; give the tokenizer.json of the model, or a text with a word a "
            "line",
            file_.name(), what);
    };
    const auto json = file_.peek(kMaxTokenizerBytes + 1);
    if (!json) return json.error();
    if (json->size() > kMaxTokenizerBytes) {
        return refused(fmt::format("has more than the {} bytes that are read of a tokenizer.json",
                                   kMaxTokenizerBytes));
    }
    JsonReader reader(*this);
    if (!nlohmann::json::sax_parse(*json, &reader)) return refused(reader.problem());
    if (!reader.has_vocabulary())
        return refused("is JSON without model.vocab, unlike a tokenizer.json of Hugging Face");
    // Frees the text: the tokens are kept.
    const auto used = file_.skip(json->size());
    return used ? Status() : used.error();
}

Status TokenList::check_ids() {
    const auto refused = [&](const std::string& what) {
        return bad_source(
            "{}: {}; the ids of its tokens must be 0 to {}, the rows of the array, "
            "once each; give the tokenizer.json of the same model",
            file_.name(), what, rows_ - 1);
    };
    // Stable: of two texts with the same id, that of the vocabulary comes first.
    std::ranges::stable_sort(tokens_, {}, &Token::id);
    // Most added tokens stand in the vocabulary too.
    const auto same = [&](const Token& a, const Token& b) {
        return a.id == b.id && text_of(a) == text_of(b);
    };
    tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), same), tokens_.end());
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (tokens_[i].id == i) continue;
        if (tokens_[i].id > i)
            return refused(fmt::format("{} tokens, and none has the id {}", tokens_.size(), i));
        return refused(fmt::format("{} and {} have the same id, {}",
                                   printable(text_of(tokens_[i - 1]), 40),
                                   printable(text_of(tokens_[i]), 40), tokens_[i].id));
    }
    if (tokens_.size() == rows_) return {};
    return refused(fmt::format("{} tokens for {} rows", tokens_.size(), rows_));
}

void TokenList::note_marks() {
    constexpr std::string_view kMarks[] = {"##", "\u0120", "\u2581"};
    for (const std::string_view mark : kMarks) {
        const auto count = std::ranges::count_if(
            tokens_, [&](const Token& token) { return text_of(token).starts_with(mark); });
        if (count == 0) continue;
        note_ += fmt::format("{}{} with {}", note_.empty() ? "" : ", ", count, mark);
    }
    if (!note_.empty())
        note_ = fmt::format("{}: words begin with marks of the tokenizer, which are kept: {}",
                            file_.name(), note_);
}

Error TokenList::wrong_count(std::uint64_t words) const {
    return bad_source(
        "{}: holds {} word(s), one a line, but the array has {} row(s); give the "
        "list that was written with it",
        file_.name(), words, rows_);
}

Result<std::string_view> TokenList::next() {
    if (has_tokens_) return text_of(tokens_[next_token_++]);
    const auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) return wrong_count(lines_.number());
    return **line;
}

Status TokenList::check_end() {
    if (has_tokens_) return {};
    for (;;) {
        const auto line = lines_.next();
        if (!line) return line.error();
        if (!*line) break;
    }
    if (lines_.number() == rows_) return {};
    return wrong_count(lines_.number());
}

}  // namespace gloved::source
