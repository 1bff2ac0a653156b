// Sends many requests of gloved-eval to one daemon and delivers the JSON replies, without waiting
// for each reply.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/retrying_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Asks one model. All answers must come from one generation of the model: figures mixed from two
/// would describe neither. Not safe for concurrent use.
class Asker {
  public:
    /// Returns the i-th request (from 0), without LF.
    using MakeRequest = std::function<std::string(std::size_t i)>;
    /// Called with the reply to the i-th request, OK or not. An error ends Asker::ask. A
    /// json::exception, as for a missing member, ends it with bad_request.
    using TakeAnswer = std::function<Status(std::size_t i, const nlohmann::json& answer)>;

    /// `peer` has `json` set and must outlive the Asker. `model` is the name of the model to ask;
    /// empty: the daemon's default.
    Asker(RetryingConnection& peer, const std::string& model);

    /// The option that each request begins with: «model="NAME"», or empty.
    const std::string& model_option() const { return model_option_; }
    /// The model's name and generation, from the replies so far; empty before the first.
    const std::string& model() const { return model_; }
    const std::string& generation() const { return generation_; }

    /// Sends the requests `make(0)` to `make(count − 1)`, with at most `window` unanswered, and
    /// calls `take` with each reply, in order. Errors: the connection's; conflict if the model was
    /// replaced meanwhile; bad_request for a malformed reply; those of `take`.
    Status ask(std::size_t count, std::size_t window, const MakeRequest& make,
               const TakeAnswer& take);

    /// Makes an Error from an ERR reply: always bad_request, with the wire's code in its message.
    static Error refusal(const nlohmann::json& answer);

  private:
    Status check(const nlohmann::json& answer);

    RetryingConnection& peer_;
    std::string model_option_;
    std::string model_;
    std::string generation_;
};

}  // namespace gloved::client
