#include "daemon/known_answer.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "common/quoting.hpp"

namespace gloved::daemon {
namespace {

constexpr std::size_t kProbeRows = 4096;
/// Another word of the same direction may come first; rounding errors are far smaller than this.
constexpr double kMinScore = 0.999999;

}  // namespace

KnownAnswer::KnownAnswer(std::shared_ptr<const format::Model> model) : model_(std::move(model)) {
    const auto norms = model_->norms();
    const auto found = std::ranges::find_if(norms, [](double norm) { return norm != 0; });
    if (found != norms.end()) row_ = static_cast<std::size_t>(found - norms.begin());
}

std::optional<kernels::Query> KnownAnswer::query(bool of_all_rows) const {
    if (!row_) return std::nullopt;
    const auto vector = model_->vector(*row_);
    kernels::Query query{
        kernels::Cosine{{{vector.begin(), vector.end()}, model_->norms()[*row_]}}, 1, {}, {}};
    if (!of_all_rows)
        query.filter.rows = format::RowRange{*row_, std::min(*row_ + kProbeRows, model_->rows())};
    return query;
}

Status KnownAnswer::check(const kernels::Engine& engine, const kernels::Answer& answer) const {
    if (!answer.hits.empty() && answer.hits[0].score > kMinScore) return {};
    return Error{ErrorCode::internal, "engine " + engine.name() +
                                          " failed its test query: it did not find " +
                                          printable(model_->key(*row_))};
}

Status KnownAnswer::ask(kernels::Engine& engine, bool of_all_rows) const {
    const auto asked = query(of_all_rows);
    if (!asked) return {};
    const auto answers = engine.run(std::span(&*asked, 1));
    if (!answers) return answers.error();
    return check(engine, (*answers)[0]);
}

}  // namespace gloved::daemon
