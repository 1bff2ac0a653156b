#include "daemon/reply.hpp"

namespace gloved::daemon {

void add_fields(wire::LineWriter& line, const std::vector<wire::Field>& fields, kernels::Row row,
                const format::Model& model) {
    for (const wire::Field field : fields) {
        switch (field) {
            case wire::Field::row:
                line.count("row", row);
                break;
            case wire::Field::rank:
                line.count("rank", model.ranks()[row]);
                break;
            case wire::Field::norm:
                line.score("norm", model.norms()[row]);
                break;
        }
    }
}

Reply::Reply(wire::Form form, wire::Verb verb, const std::vector<wire::StatusField>& status,
             std::vector<kernels::Hit> hits, std::vector<wire::Field> fields,
             std::shared_ptr<const format::Model> model)
    : form_(form), hits_(std::move(hits)), tail_is_due_(true), fields_(std::move(fields)), model_(std::move(model)) {
    wire::append_head(text_, form_, verb, hits_.size(), status);
}

void Reply::append_to(std::string& out, std::size_t enough_bytes) {
    out += text_;
    text_.clear();
    if (error_is_due_) out += wire::error_reply(form_, *error_, suggestions_);
    error_is_due_ = false;
    for (; next_ < hits_.size() && out.size() < enough_bytes; ++next_) {
        const kernels::Hit& hit = hits_[next_];
        wire::LineWriter line(out, form_, next_ == 0);
        line.begin();
        line.text("word", model_->key(hit.row));
        line.score("score", hit.score);
        add_fields(line, fields_, hit.row, *model_);
        line.end();
    }
    if (tail_is_due_ && next_ == hits_.size()) {
        wire::append_tail(out, form_);
        tail_is_due_ = false;
    }
}

}  // namespace gloved::daemon
