// The request of an answer that is audited, with its words looked up again by plain searches.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {

/// The fault of an answer.
inline Error wrong(std::string message) { return {ErrorCode::mismatch, std::move(message)}; }

/// Words by the rule of PROTOCOL.md («Words that the model does not have»), found by plain
/// searches. Safe for concurrent use.
class AuditWords {
  public:
    /// `model` must outlive it.
    explicit AuditWords(const format::Model& model) : model_(model) {}

    std::optional<format::Row> find(std::string_view word, bool ignores_case);
    std::optional<format::Row> find_in_other_case(std::string_view word);

  private:
    std::optional<format::Row> find_folded(std::string_view word);
    void fold_all();

    const format::Model& model_;
    std::once_flag folded_;
    std::unordered_map<std::string, format::Row> by_folding_;  // the most frequent of each folding
};

/// A request with its words looked up.
struct AuditQuestion {
    wire::Request request;
    std::vector<format::Row> chosen;  ///< among which it searches, ascending; empty: all
    std::vector<format::Row> rows;    ///< of its other words, without those that are left out
    Weights weights;                  ///< of `rows`, for NEAR
    // What the reply has to tell of its words (PROTOCOL.md, «Words that the model does not have»).
    std::vector<std::string> skipped;
    std::vector<std::pair<std::string, std::string>> replaced;
    std::uint64_t unlisted = 0;
    /// The rows of the lists that it names, by name; read_audit_question leaves it empty.
    std::map<std::string, const std::vector<format::Row>*> lists;
};

/// Parses `line`, the request of an answer, and looks up its words. Error: mismatch, if the daemon
/// would have refused it or would write it in another way.
Result<AuditQuestion> read_audit_question(const format::Model& model, AuditWords& words,
                                          const std::string& line);

}  // namespace gloved::verify
