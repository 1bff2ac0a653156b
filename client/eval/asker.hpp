// Sends many requests to one daemon, in JSON, without waiting for each reply.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "client/connection.hpp"
#include "client/retrying_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Asks one model. All answers must come from one generation of it, since mixed figures would
/// describe neither. Not thread-safe.
class Asker {
  public:
    /// Makes the i-th request, without LF.
    using MakeRequest = std::function<std::string(std::size_t i)>;
    /// Takes the reply to the i-th request, OK or not. An error ends Asker::ask, and so does a
    /// json::exception for a missing member.
    using TakeAnswer = std::function<Status(std::size_t i, const nlohmann::json& answer)>;

    /// `peer` speaks JSON and must outlive it. `model` is empty for the daemon's.
    Asker(RetryingConnection& peer, const std::string& model);

    /// The option that each request begins with: «model="NAME"», or empty.
    const std::string& model_option() const { return model_option_; }
    /// Name and generation in the replies so far; empty if they had none.
    const std::string& model() const { return model_; }
    const std::string& generation() const { return generation_; }

    /// Sends `count` requests, with at most `window` unanswered. Errors: the connection's; conflict
    /// if the model was replaced; bad_request for a malformed reply; those of `take`.
    Status ask(std::size_t count, std::size_t window, const MakeRequest& make,
               const TakeAnswer& take);

    /// Converts a refusal to an error.
    static Error refusal(const nlohmann::json& answer);

  private:
    Status check(const nlohmann::json& answer);

    RetryingConnection& peer_;
    std::string model_option_;
    std::string model_;
    std::string generation_;
};

}  // namespace gloved::client
