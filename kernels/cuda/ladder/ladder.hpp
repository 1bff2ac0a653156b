// The ladder: one search, written in the ways that a student project tried one after the other, and
// ours on top. Each rung is one file and one idea; what it gained stands in
// docs/performance-history.md, from `gloved-bench --rungs all`.
//
// A rung is for measuring and reading, not for serving: it scores in float32 within a stated bound,
// knows no filters and finds at most kMaxLadderHits words. The cuda engine goes on from v5.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::ladder {

inline constexpr std::size_t kMaxLadderHits = 32;

/// Milliseconds of one search. Parts by device events (v0: the host's clock); `total` by the host's
/// clock from the call to the hits in host memory; what the parts do not explain (copies,
/// allocation, launches, waiting) is overhead.
struct RungTimes {
    double dot_product = 0;
    double first_merge = 0;
    double botched_merge_sort = 0;
    double total = 0;
    double overhead() const { return total - dot_product - first_merge - botched_merge_sort; }
};

/// What a rung is.
struct RungInfo {
    std::string_view name;   ///< «v0» … «v5», or of a discarded variant «v3-16B»
    std::string_view idea;   ///< one sentence
    std::string_view limit;  ///< what should bound its time, in a sentence
    bool discarded = false;  ///< a variant that was tried beside the path and lost
    bool resident = true;    ///< the model stays on the device between queries
    /// |score - canonical cosine| of every hit is at most this, for rows whose norm bounds.hpp
    /// covers and zero rows.
    double (*score_bound)(std::size_t dim) = nullptr;
};

/// One way to search one model. Not safe for concurrent use.
class Rung {
  public:
    virtual ~Rung() = default;
    Rung(const Rung&) = delete;
    Rung& operator=(const Rung&) = delete;

    virtual const RungInfo& info() const = 0;
    /// The k (1 to kMaxLadderHits) rows of largest float32 cosine to `query`, best first, ties in
    /// any order; a zero row scores 0; k larger than the model returns all rows. `times`, where
    /// given, is filled in. Errors: device.
    virtual Result<std::vector<Hit>> search(const QueryVector& query, std::size_t k,
                                            RungTimes* times) = 0;

  protected:
    Rung() = default;
};

/// Every rung in the order of the table: v0, v1, v2, v3 and its discarded variants, v4, v5.
std::span<const RungInfo> list_rungs();

/// What several rungs share: the model's vectors and norms on a device. v1 and v0 use the host's
/// copy.
class ResidentModel;
Result<std::shared_ptr<const ResidentModel>> make_resident_model(const format::Model& model,
                                                                 int device);

/// Makes the rung `name` on `model`, which must outlive it. `resident` is that model's, and may be
/// null for rungs whose info says that nothing is resident (v0 makes no call to a device at all).
/// Errors: unavailable for a name that does not exist, device.
Result<std::unique_ptr<Rung>> make_rung(std::string_view name, const format::Model& model,
                                        std::shared_ptr<const ResidentModel> resident, int device);

}  // namespace gloved::kernels::ladder
