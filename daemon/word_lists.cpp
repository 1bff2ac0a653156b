#include "daemon/word_lists.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/input_file.hpp"
#include "common/quoting.hpp"
#include "common/text_lines.hpp"
#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

using format::ListBuilder;
using format::ListFile;

/// Maximum size of a list that is a pipe, whose text stays in memory.
constexpr std::size_t kMaxPipeBytes = std::size_t{64} << 20;
/// Maximum number of a list's missing words that are looked up to tell of another case. Each takes
/// some microseconds of the start.
constexpr std::size_t kMaxLookedUpWords = std::size_t{1} << 16;

bool is_regular_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// Reads the lists of one model.
class ListReader {
  public:
    ListReader(const format::Model& model, const format::CaseIndex* cases, PipeTexts& pipes,
               bool is_reload)
        : model_(model), pipes_(pipes), is_reload_(is_reload) {
        if (cases != nullptr)
            in_other_case_ = [cases](std::string_view word) {
                return cases->find_in_other_case(word);
            };
    }

    /// Reads a list. Sets `origin`.
    Result<ListFile> read(const ListSetting& setting, ListOrigin& origin) {
        const bool is_regular = is_regular_file(setting.path);
        origin = ListOrigin::pipe;
        if (const auto known = pipes_.find(setting.path); known != pipes_.end() && !is_regular)
            return read_lines(TextLines(setting.path, known->second));
        auto file = InputFile::open(setting.path, NoWriter::refuse);
        if (!file) return file.error();
        if (file->is_regular()) {
            origin = ListOrigin::file;
            pipes_.erase(setting.path);  // from now on, the list's old words are those of a file
            auto list = read_lines(TextLines(*file));
            if (!list) return list;
            if (Status unchanged = file->check_unchanged(); !unchanged) return unchanged.error();
            return list;
        }
        if (is_reload_) {
            return bad_source("{}: is not a regular file any more, and a reload reads no other",
                              setting.path);
        }
        // Its writer may take as long as it likes.
        write_log_always(spdlog::level::info,
                         fmt::format("list {}: reads {} to its end", setting.name, setting.path));
        auto text = file->read_all(kMaxPipeBytes);
        if (!text) return text.error();
        const auto at = pipes_.emplace(setting.path, *std::move(text)).first;
        return read_lines(TextLines(setting.path, at->second));
    }

    /// Makes the list that was at `place` before a reload anew for `model`, without its file.
    ListFile keep(const WordLists::Before& before, std::size_t place) const {
        ListBuilder builder(model_, in_other_case_);
        const format::OtherWords& others = before.lists.others(place);
        const auto memberships = before.lists.rows()->memberships();
        for (std::size_t row = 0; row < memberships.size(); ++row) {
            if ((memberships[row] >> place & 1) == 0) continue;
            if (!std::ranges::binary_search(others.rows, row)) builder.add(before.model.key(row));
        }
        for (std::string_view rest = others.text; !rest.empty();) {
            const std::size_t end = rest.find('\n');
            builder.add(rest.substr(0, end));
            rest.remove_prefix(end + 1);
        }
        return builder.finish();
    }

  private:
    Result<ListFile> read_lines(TextLines lines) const {
        ListBuilder builder(model_, in_other_case_);
        std::optional<std::string> note;
        if (Status read = format::read_list(lines, {&builder, 1}, &note); !read)
            return read.error();
        if (note) write_log_always(spdlog::level::warn, *note);
        return builder.finish();
    }

    const format::Model& model_;
    ListBuilder::FindInOtherCase in_other_case_;
    PipeTexts& pipes_;
    const bool is_reload_;
};

void log_list(const ListFacts& list, const std::string& path) {
    std::string text = fmt::format("list {}, {}: {} words, {} not in the model", list.name, path,
                                   list.words, list.missing);
    if (list.replaced > 0) text += fmt::format(", {} taken in another case or form", list.replaced);
    if (list.origin == ListOrigin::pipe) text += "; no regular file: a reload does not read it";
    const auto level = list.words == 0 ? spdlog::level::warn : spdlog::level::info;
    write_log_always(level, text);
}

constexpr std::string_view kSuffix = ".txt";

/// Whether editors and copies leave such files behind.
bool is_of_no_list(std::string_view file) { return file.starts_with('.') || file.ends_with('~'); }

/// Why a file is no list; empty if it is one.
std::string fault_of(const std::filesystem::directory_entry& file, const std::string& name) {
    std::error_code error;
    const bool is_regular = file.is_regular_file(error);
    if (error) return error.message();
    if (!is_regular) return "it is no regular file";
    if (!is_name(name)) return "a name of a list has letters, digits, '.', '_' and '-' alone";
    return {};
}

}  // namespace

Result<std::vector<ListSetting>> find_lists(std::span<const ListSetting> named,
                                            const std::string& directory) {
    std::vector<ListSetting> lists(named.begin(), named.end());
    if (directory.empty()) return lists;
    std::vector<ListSetting> found;
    std::error_code error;
    auto at = std::filesystem::directory_iterator(directory, error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
        std::string name = at->path().filename().string();
        if (is_of_no_list(name)) continue;
        if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
        if (const std::string fault = fault_of(*at, name); !fault.empty()) {
            log_warning("--lists: {} is no list: {}", printable(at->path().string()), fault);
            continue;
        }
        if (std::ranges::find(named, name, &ListSetting::name) == named.end())
            found.push_back({std::move(name), at->path().string(), true});
    }
    if (error) return system_error("--lists: " + directory, "cannot read", error.value());
    std::ranges::sort(found, {}, &ListSetting::name);
    const auto twice = std::ranges::adjacent_find(found, {}, &ListSetting::name);
    if (twice != found.end()) {
        return bad_source("--lists: {}: two files are the list {}: {} and {}", directory,
                          twice->name, twice->path, std::next(twice)->path);
    }
    if (lists.size() + found.size() > kernels::kMaxLists) {
        return bad_source("--lists: {}: {} lists with those of --list; a model has at most {}",
                          directory, lists.size() + found.size(), kernels::kMaxLists);
    }
    std::ranges::move(found, std::back_inserter(lists));
    return lists;
}

std::string_view to_string(ListOrigin origin) {
    switch (origin) {
        case ListOrigin::file:
            return "file";
        case ListOrigin::pipe:
            return "pipe";
        case ListOrigin::kept:
            break;
    }
    return "kept";
}

Result<WordLists> WordLists::read(std::span<const ListSetting> settings, const format::Model& model,
                                  const format::CaseIndex* cases, PipeTexts& pipes,
                                  const Before* before) {
    WordLists lists;
    if (settings.empty()) return lists;
    model.index_words();
    auto all = std::make_shared<kernels::RowLists>(model.rows());
    ListReader reader(model, cases, pipes, before != nullptr);
    for (const ListSetting& setting : settings) {
        // As two variables: g++ 12 with -O2 warns wrongly of an optional.
        const auto old = before != nullptr ? before->lists.place_of(setting.name) : std::nullopt;
        const bool was_there = old.has_value();
        const std::size_t place = old.value_or(0);
        ListOrigin origin = ListOrigin::file;
        auto list = reader.read(setting, origin);
        std::string fault;
        if (!list) fault = list.error().message;
        // A file that is being written again has no words for a moment.
        const bool had_words = was_there && before->lists.has_words(place);
        if (list && list->is_empty && had_words) {
            fault = fmt::format("{}: has no words; to take the list away, {}", setting.path,
                                setting.is_of_directory ? "remove the file" : "restart without it");
        }
        if (!fault.empty()) {
            fault = fmt::format("list {}: {}", setting.name, fault);
            if (before == nullptr) return Error{list.error().code, fault};
            if (!was_there) fault += "; it has no old words, and is left out";
            lists.faults_ += (lists.faults_.empty() ? "" : "; ") + fault;
            if (!was_there) continue;
            list = reader.keep(*before, place);
            origin = ListOrigin::kept;
        }
        lists.facts_.push_back({setting.name, list->rows.size(), list->missing, list->checksum,
                                list->replaced, origin});
        log_list(lists.facts_.back(), setting.path);
        all->add(std::move(list->rows));
        lists.others_.push_back(std::move(list->others));
    }
    lists.rows_ = std::move(all);
    return lists;
}

void WordLists::log_other_cases(const format::CaseIndex& cases) const {
    for (std::size_t place = 0; place < facts_.size(); ++place) {
        std::size_t looked_up = 0;
        std::size_t found = 0;
        for (std::string_view rest = others_[place].text;
             !rest.empty() && looked_up < kMaxLookedUpWords; ++looked_up) {
            const std::size_t end = rest.find('\n');
            if (cases.find_in_other_case(rest.substr(0, end))) ++found;
            rest.remove_prefix(end + 1);
        }
        if (found == 0) continue;
        write_log_always(spdlog::level::info,
                         fmt::format("list {}: --case ignore would take {} of {} missing words, in "
                                     "another case or form",
                                     facts_[place].name, found, looked_up));
    }
}

std::optional<std::size_t> WordLists::place_of(std::string_view name) const {
    const auto at = std::ranges::find(facts_, name, &ListFacts::name);
    if (at == facts_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - facts_.begin());
}

std::size_t WordLists::size_bytes() const {
    std::size_t bytes = rows_->bytes();
    for (const format::OtherWords& others : others_)
        bytes += others.text.capacity() + others.rows.capacity() * sizeof(format::Row);
    return bytes;
}

Result<kernels::ListMask> WordLists::find(std::span<const std::string> names) const {
    kernels::ListMask found = 0;
    for (const std::string& name : names) {
        const auto place = place_of(name);
        if (!place) {
            std::string there;
            for (const ListFacts& facts : facts_) there += (there.empty() ? "" : ", ") + facts.name;
            return error_with(ErrorCode::unknown_list, "no list {} of this model: there is {}",
                              printable(name), there.empty() ? "none" : there);
        }
        found |= kernels::ListMask{1} << *place;
    }
    return found;
}

}  // namespace gloved::daemon
