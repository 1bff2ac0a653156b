#include "daemon/word_lists.hpp"

#include <algorithm>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/list_file.hpp"
#include "common/quoting.hpp"
#include "daemon/log.hpp"

namespace gloved::daemon {

Result<WordLists> WordLists::read(std::span<const ListSetting> settings,
                                  const format::Model& model) {
    WordLists lists;
    if (settings.empty()) return lists;
    model.index_words();
    auto all = std::make_shared<kernels::RowLists>(model.rows());
    for (const ListSetting& setting : settings) {
        auto list = format::read_list_file(setting.path, model);
        if (!list) {
            return error_with(list.error().code, "list {}: {}", setting.name, list.error().message);
        }
        lists.facts_.push_back({setting.name, list->rows.size(), list->missing, list->checksum});
        const auto level = list->rows.empty() ? spdlog::level::warn : spdlog::level::info;
        write_log_always(level,
                         fmt::format("list {}, {}: {} words, {} not in the model", setting.name,
                                     setting.path, list->rows.size(), list->missing));
        all->add(std::move(list->rows));
    }
    lists.rows_ = std::move(all);
    return lists;
}

Result<kernels::ListMask> WordLists::find(std::span<const std::string> names) const {
    kernels::ListMask found = 0;
    for (const std::string& name : names) {
        const auto at = std::ranges::find(facts_, name, &ListFacts::name);
        if (at == facts_.end()) {
            std::string there;
            for (const ListFacts& facts : facts_) there += (there.empty() ? "" : ", ") + facts.name;
            return error_with(ErrorCode::unknown_list, "no list {} of this model: there is {}",
                              printable(name), there.empty() ? "none" : there);
        }
        found |= kernels::ListMask{1} << (at - facts_.begin());
    }
    return found;
}

}  // namespace gloved::daemon
