#include "daemon/reply.hpp"

#include <cassert>

#include "daemon/connection_memory.hpp"

namespace gloved::daemon {

Reply::Reply(wire::Form form, Error error) : error_code_(error.code), form_(form) {
    auto line = std::make_unique<ErrorLine>(form, std::move(error));
    error_ = line.get();
    source_ = std::move(line);
}

Reply::Reply(wire::Form form, wire::Verb verb, const std::vector<wire::StatusField>& status,
             std::size_t count, std::unique_ptr<TextSource> source)
    : source_(std::move(source)), form_(form) {
    wire::append_head(text_, form, verb, count, status);
}

void Reply::append_to(std::string& out, std::size_t enough_bytes) {
    if (!text_.empty()) {
        out += text_;
        std::string().swap(text_);
    }
    if (source_ != nullptr && !is_costly()) append_piece(out, enough_bytes);
}

void Reply::make_costly_piece() {
    assert(is_costly());
    append_piece(text_, kPieceBytes);
}

void Reply::append_piece(std::string& out, std::size_t enough_bytes) {
    source_->append_to(out, enough_bytes);
    if (!source_->finished()) return;
    if (error_ == nullptr) wire::append_tail(out, form_);
    error_ = nullptr;
    source_ = nullptr;
}

}  // namespace gloved::daemon
