// Checks answers that a daemon has given, long after and elsewhere, for gloved-verify --audit.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

/// What to check, and with which lists.
struct AuditChecks {
    struct List {
        std::string name;
        std::string path;
    };

    std::string file;         ///< replies in JSON, one a line; «-» for stdin; empty for none
    std::vector<List> lists;  ///< those that the answers may name
};

/// Reads replies in JSON, as the daemon writes them after FORMAT json. Answers each NEAR, NEARVEC
/// and ANALOGY among them again, from the request that it carries (certify=1): its words are looked
/// up by a plain search, and its hits found by the oracle. Compares words, bits of scores, fields,
/// the k-th score, the generation and the checksums of lists. Calls `report` for each list, for
/// each line that is wrong, in their order, and once for all. Other replies are counted. The model
/// must have passed check_values. Error: interrupted, once `stop` is true.
Status check_audit(const format::Model& model, const AuditChecks& checks, std::size_t threads,
                   const std::atomic<bool>& stop, const Reporter& report);

}  // namespace gloved::verify
