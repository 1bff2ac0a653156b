#include "museum/search.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <utility>

#include "common/elapsed.hpp"
#include "kernels/bounds.hpp"
#include "kernels/cuda/runtime.hpp"
#include "museum/selection.hpp"

namespace gloved::museum {
namespace {

using kernels::Hit;
using kernels::cuda::check;
using kernels::cuda::copy_async;
using kernels::cuda::DeviceBuffer;
using kernels::cuda::Event;
using kernels::cuda::Stream;
using kernels::cuda::use_device;

constexpr std::array<Version, 5> kVersions = {
    {{.name = "v0",
      .idea = "One thread of the processor scores row after row, then inserts every score into a "
              "list of the best.",
      .limit = "One dependent float32 addition an element: 4 processor cycles each."},
     {.name = "v1",
      .idea = "Every query copies the whole model to the device, where one thread scores one row "
              "against a query in shared memory.",
      .limit = "The copy from pageable memory, at about 10 GB/s.",
      .launch = launch_v1,
      .resident = false,
      .lists_in_global_memory = true},
     {.name = "v2",
      .idea =
          "The model stays on the device; pointers lie in constant memory, and lists are merged "
          "in private memory.",
      .limit = "Reads a row apart from thread to thread: 32 sectors a load, kept for use only "
               "where the L1 cache is large enough.",
      .launch = launch_v2},
     {.name = "v3",
      .idea = "Eight threads share a row, so that each load of theirs is one whole 32-byte sector; "
              "sums meet in shared memory.",
      .limit = "One read of the model, as far as 4-byte loads keep enough in flight.",
      .launch = launch_v3},
     {.name = "v4",
      .idea = "v3's eight threads add up by __shfl_down_sync, and a query allocates nothing and "
              "waits once.",
      .limit = "One read of the model by 4-byte loads, then a launch for each round of the merge.",
      .launch = launch_v4,
      .stepwise = false}}};

/// Writes `query` times the power of two that the claim asks for to `scaled`, and returns q'.
float scale_query(const kernels::QueryVector& query, std::span<float> scaled) {
    const int exponent = -std::ilogb(query.norm);
    for (std::size_t i = 0; i < scaled.size(); ++i)
        scaled[i] = std::ldexp(query.values[i], exponent);
    return static_cast<float>(kernels::canonical_norm(scaled.data(), scaled.size()));
}

class SearchOnDevice final : public Search {
  public:
    SearchOnDevice(const Version& version, const format::Model& model, int device)
        : version_(version), model_(model), device_(device) {}

    Status prepare() {
        if (version_.launch == nullptr) return {};
        if (Status done = use_device(device_); !done) return done;
        Status made = move_into(stream_, Stream::create());
        for (Event& event : events_) {
            if (made) made = move_into(event, Event::create());
        }
        for (const double norm : model_.norms()) norms_.push_back(static_cast<float>(norm));
        if (made && version_.resident) made = upload();
        // Whole lists, whatever k is.
        if (made && !version_.stepwise) made = allocate(model_.rows() + kMaxHits);
        return made;
    }

    Result<std::vector<Hit>> run(const kernels::QueryVector& query, std::size_t k,
                                 SearchTimes* times) override {
        assert(k >= 1 && k <= kMaxHits && query.values.size() == model_.dim());
        const auto begun = std::chrono::steady_clock::now();
        const std::size_t wanted = std::min(k, model_.rows());
        std::vector<float> scaled(model_.dim());
        const float query_norm = scale_query(query, scaled);
        std::vector<Entry> best(wanted);
        double scored_ms = 0;
        if (version_.launch == nullptr) {
            best = search_v0(model_, scaled, query_norm, wanted, scored_ms);
        } else if (Status done = search(scaled, query_norm, best); !done) {
            return done.error();
        }
        std::vector<Hit> hits;
        hits.reserve(best.size());
        for (const Entry& entry : best)
            hits.push_back({entry.row, static_cast<double>(entry.score)});
        if (times == nullptr) return hits;
        *times = {};
        times->total = ms_since(begun);
        if (version_.launch == nullptr) {
            times->dot_product = scored_ms;
            times->first_merge = times->total - scored_ms;
        } else if (Status read = read_times(*times); !read) {
            return read.error();
        }
        return hits;
    }

  private:
    enum Border : std::size_t { kDotBegins, kDotEnds, kFirstMergeEnds, kMergeSortEnds, kBorders };

    Status upload() {
        Status made = move_into(vectors_, vectors_.allocate(model_.vectors().size()));
        if (made) made = move_into(device_norms_, device_norms_.allocate(norms_.size()));
        if (made)
            made = copy_async<float>(vectors_.data(), model_.vectors().data(), vectors_.size(),
                                     stream_);
        if (made)
            made = copy_async<float>(device_norms_.data(), norms_.data(), norms_.size(), stream_);
        return made ? stream_.synchronize() : made;
    }

    Status allocate(std::size_t entries) {
        Status made = move_into(query_, query_.allocate(model_.dim()));
        return made ? move_into(entries_, entries_.allocate(entries)) : made;
    }

    /// Marks a border between phases, behind which a stepwise version waits.
    Status mark(Border border) {
        if (Status done = events_[border].record(stream_); !done) return done;
        return version_.stepwise ? stream_.synchronize() : Status();
    }

    Status search(const std::vector<float>& scaled, float query_norm, std::vector<Entry>& best) {
        if (Status done = use_device(device_); !done) return done;
        const std::size_t wanted = best.size();
        const std::size_t lists = lists_for(model_.rows(), wanted);
        Status done;
        if (!version_.resident) done = upload();
        if (done && version_.stepwise) done = allocate(lists * wanted);
        if (done) done = copy_async<float>(query_.data(), scaled.data(), scaled.size(), stream_);
        if (done) done = mark(kDotBegins);
        if (!done) return done;
        const DotArguments arguments{.vectors = vectors_.data(),
                                     .norms = device_norms_.data(),
                                     .query = query_.data(),
                                     .entries = entries_.data(),
                                     .rows = model_.rows(),
                                     .slots = lists * wanted,
                                     .dim = static_cast<std::uint32_t>(model_.dim()),
                                     .query_norm = query_norm};
        const bool in_global = version_.lists_in_global_memory;
        done = check(version_.launch(arguments, stream_.get()), "launch of dot_product");
        if (done) done = mark(kDotEnds);
        if (done) done = first_merge(in_global, entries_.data(), lists, wanted, stream_);
        if (done) done = mark(kFirstMergeEnds);
        if (done)
            done = botched_merge_sort(in_global, entries_.data(), lists, wanted, version_.stepwise,
                                      stream_);
        if (done) done = mark(kMergeSortEnds);
        if (done) done = copy_async<Entry>(best.data(), entries_.data(), wanted, stream_);
        Status waited = stream_.synchronize();  // what was copied must not move before
        if (version_.stepwise) {
            query_ = {};
            entries_ = {};
        }
        if (!version_.resident) {
            vectors_ = {};
            device_norms_ = {};
        }
        return done ? waited : done;
    }

    Status read_times(SearchTimes& times) const {
        const std::array<double*, 3> phases = {&times.dot_product, &times.first_merge,
                                               &times.botched_merge_sort};
        for (std::size_t i = 0; i < phases.size(); ++i) {
            const auto ms = kernels::cuda::elapsed_ms(events_[i], events_[i + 1]);
            if (!ms) return ms.error();
            *phases[i] = static_cast<double>(*ms);
        }
        return {};
    }

    const Version& version_;
    const format::Model& model_;
    int device_;
    std::vector<float> norms_;
    Stream stream_;
    std::array<Event, kBorders> events_;
    DeviceBuffer<float> vectors_;
    DeviceBuffer<float> device_norms_;
    DeviceBuffer<float> query_;
    DeviceBuffer<Entry> entries_;
};

}  // namespace

double score_bound(std::size_t dim) {
    return (1.01 * (static_cast<double>(dim) + 4.0) + 3.0) * kernels::kHalfUlp;
}

std::span<const Version> versions() { return kVersions; }

Result<std::unique_ptr<Search>> Search::create(const Version& version, const format::Model& model,
                                               int device) {
    auto search = std::make_unique<SearchOnDevice>(version, model, device);
    if (Status done = search->prepare(); !done) return done.error();
    return std::unique_ptr<Search>(std::move(search));
}

}  // namespace gloved::museum
