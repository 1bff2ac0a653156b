#include "daemon/reply.hpp"

#include <fmt/format.h>

#include <iterator>

#include "common/wire/reply.hpp"

namespace gloved::daemon {

void append_fields(std::string& out, const std::vector<wire::Field>& fields, kernels::Row row,
                   const format::Model& model) {
    for (const wire::Field field : fields) {
        switch (field) {
            case wire::Field::row:
                fmt::format_to(std::back_inserter(out), "\t{}", row);
                break;
            case wire::Field::rank:
                fmt::format_to(std::back_inserter(out), "\t{}", model.ranks()[row]);
                break;
            case wire::Field::norm:
                fmt::format_to(std::back_inserter(out), "\t{:.6f}", model.norms()[row]);
                break;
        }
    }
}

Reply::Reply(const Error& error) : text_(wire::error_line(error)) {}

void Reply::append_to(std::string& out, std::size_t enough_bytes) {
    out += text_;
    text_.clear();
    while (next_ < hits_.size() && out.size() < enough_bytes) {
        const kernels::Hit& hit = hits_[next_++];
        out += model_->key(hit.row);
        out += '\t';
        wire::append_score(out, hit.score);
        append_fields(out, fields_, hit.row, *model_);
        out += '\n';
    }
}

}  // namespace gloved::daemon
