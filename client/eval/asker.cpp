#include "client/eval/asker.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

#include "client/pipeline.hpp"
#include "client/reply_reader.hpp"
#include "common/error_with.hpp"
#include "common/wire/json_string.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {

Asker::Asker(RetryingConnection& peer, const std::string& model)
    : peer_(peer), model_option_(model.empty() ? "" : "model=" + wire::quote_word(model)) {}

Status Asker::ask(std::size_t count, std::size_t window, const MakeRequest& make,
                  const TakeAnswer& take) {
    PipelineLimits limits;
    limits.requests = window;
    std::size_t answered = 0;
    Pipeline pipeline(
        peer_, limits, [&](std::string_view request, const ReplyPiece& piece) -> Status {
            const auto answer = nlohmann::json::parse(piece.bytes, nullptr, false);
            const auto unclear = [&](std::string_view what) {
                return error_with(ErrorCode::bad_request,
                                  "the answer to {} cannot be understood: {}", request, what);
            };
            if (!piece.first || !piece.last || !answer.is_object())
                return unclear("it is not a JSON object of at most a megabyte");
            try {
                if (Status same = check(answer); !same) return same;
                return take(answered++, answer);
            } catch (const nlohmann::json::exception& fault) {
                // Without the library's own number of the fault.
                const std::string_view what = fault.what();
                const std::size_t end_of_number = what.find("] ");
                return unclear(what.substr(end_of_number == what.npos ? 0 : end_of_number + 2));
            }
        });
    std::size_t asked = 0;
    while (asked < count || pipeline.has_pending()) {
        while (asked < count && pipeline.has_room()) pipeline.push(make(asked++));
        if (const auto stepped = pipeline.step(-1); !stepped) return stepped.error();
    }
    return {};
}

Error Asker::refusal(const nlohmann::json& answer) {
    return {ErrorCode::bad_request,
            answer.at("code").get<std::string>() + ": " + answer.at("message").get<std::string>()};
}

Status Asker::check(const nlohmann::json& answer) {
    if (!answer.contains("generation")) return {};
    const auto generation = answer.at("generation").get<std::string>();
    if (!generation_.empty() && generation != generation_) {
        return Error{ErrorCode::conflict,
                     "the model was replaced while it was evaluated; start again"};
    }
    generation_ = generation;
    model_ = wire::bytes_of_json_string(answer.at("model").get<std::string>());
    return {};
}

}  // namespace gloved::client
