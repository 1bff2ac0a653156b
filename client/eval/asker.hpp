// Many requests to one daemon, in JSON, ahead of their answers.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "client/connection.hpp"
#include "client/patient_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Asks for one model. All its answers must come from the same: figures of two models would be
/// figures of neither. Not safe for concurrent use.
class Asker {
  public:
    /// The i-th request, without LF.
    using MakeRequest = std::function<std::string(std::size_t i)>;
    /// Takes the answer to the i-th request: the object, OK or not. An error ends the asking; so
    /// does a json::exception, for an answer that lacks what it must have.
    using TakeAnswer = std::function<Status(std::size_t i, const nlohmann::json& answer)>;

    /// `peer` speaks JSON and must outlive it. `model` is empty for the daemon's.
    Asker(PatientConnection& peer, const std::string& model);

    /// «model="NAME"», or nothing: the option that each request begins with.
    const std::string& model_option() const { return model_option_; }
    /// The name and the generation that the answers so far bore; empty where they bore none.
    const std::string& model() const { return model_; }
    const std::string& generation() const { return generation_; }

    /// Asks `count` requests, up to `window` of them ahead of their answers. Errors: the
    /// connection's; conflict, when the model was replaced; bad_request, for an answer that cannot
    /// be understood; `take`'s.
    Status ask(std::size_t count, std::size_t window, const MakeRequest& make,
               const TakeAnswer& take);

    /// The error for a refusal that spoils it all.
    static Error refusal(const nlohmann::json& answer);

  private:
    Status check(const nlohmann::json& answer);

    PatientConnection& peer_;
    std::string model_option_;
    std::string model_;
    std::string generation_;
};

}  // namespace gloved::client
