#include "daemon/list_directory.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/quoting.hpp"
#include "daemon/log.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::daemon {
namespace {

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
        return error_with(ErrorCode::bad_source,
                          "--lists: {}: two files are the list {}: {} and {}", directory,
                          twice->name, twice->path, std::next(twice)->path);
    }
    if (lists.size() + found.size() > kernels::kMaxLists) {
        return error_with(ErrorCode::bad_source,
                          "--lists: {}: {} lists with those of --list; a model has at most {}",
                          directory, lists.size() + found.size(), kernels::kMaxLists);
    }
    std::ranges::move(found, std::back_inserter(lists));
    return lists;
}

}  // namespace gloved::daemon
