// Opens and reads the downloads of a conversion, one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/format/publish.hpp"
#include "common/result.hpp"
#include "tools/convert/convert.hpp"
#include "tools/convert/memory_plan.hpp"
#include "tools/convert/row_buckets.hpp"
#include "tools/convert/spool.hpp"
#include "tools/source/input.hpp"
#include "tools/source/report.hpp"

namespace gloved::convert {

/// What is known of an input before it is read.
struct InputFacts {
    std::uint64_t packed_bytes = 0;       ///< as on disk; 0: unknown
    std::uint64_t fewest_text_bytes = 0;  ///< packing may save hardly anything; 0: unknown
    std::uint64_t text_bytes = std::uint64_t{6} << 30;  ///< a typical size, if nothing is known
    bool takes_member = true;  ///< it may be an archive, or no member is named
};

struct Inputs {
    source::Input first;
    std::vector<InputFacts> facts;  ///< of all
};

/// Opens the first of options.inputs and looks at the others, so that one that cannot be read is
/// told before the first is read. The others are closed again: each takes memory while it is open.
/// Errors: those of source::Input::open; bad_source if a member is named, and no input is an
/// archive.
Result<Inputs> open_inputs(const ConvertOptions& options, const std::atomic<bool>& stop);

/// Reads the inputs one after the other into buckets, whose rows go to `spool`, and describes each
/// in the report. Lines, rows and batches are numbered on from one input to the next. Errors: those
/// of source::read_source and RowBuckets; bad_source, for inputs of different dims or too many
/// words; io, if there is surely no space for the model.
Status read_inputs(Inputs inputs, const ConvertOptions& options, const MemoryPlan& plan,
                   const format::Staging& staging, const Spool& spool, RowBuckets& buckets,
                   const std::atomic<bool>& stop,
                   const std::function<void(const std::string&)>& say, source::Report& report);

}  // namespace gloved::convert
