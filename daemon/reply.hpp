// One answer on its way to a connection.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Text, and then hits that become text piece by piece: an answer of 65,536 hits never stands whole in memory as text.
class Reply {
  public:
    Reply() = default;
    explicit Reply(std::string text) : text_(std::move(text)) {}
    explicit Reply(const Error& error);
    /// An OK with these status fields and hits. The model is kept alive until the reply is gone.
    Reply(const std::vector<wire::StatusField>& status, std::vector<kernels::Hit> hits, std::vector<wire::Field> fields,
          std::shared_ptr<const format::Model> model)
        : text_(wire::ok_line(hits.size(), status)),
          hits_(std::move(hits)),
          fields_(std::move(fields)),
          model_(std::move(model)) {}

    /// Appends at least one line of what is left, and more until `out` has `enough_bytes`.
    void append_to(std::string& out, std::size_t enough_bytes);
    bool finished() const { return text_.empty() && next_ == hits_.size(); }

  private:
    std::string text_;
    std::vector<kernels::Hit> hits_;
    std::size_t next_ = 0;
    std::vector<wire::Field> fields_;
    std::shared_ptr<const format::Model> model_;
};

}  // namespace gloved::daemon
