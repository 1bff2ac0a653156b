// From a download to a published model.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "common/result.hpp"
#include "tools/convert/report.hpp"
#include "tools/convert/source.hpp"

namespace gloved::convert {

struct ConvertOptions {
    std::string input;  ///< a path, or «-» for stdin
    std::string model_dir;
    SourceOptions source;
    Duplicates duplicates = Duplicates::first;
};

/// Converts options.input to a model and publishes it as options.model_dir, with progress on a terminal. `say` is told,
/// on the calling thread, what was found and what looks odd.
///
/// Three stages: lines are parsed and their vectors appended to a spool file in the staging directory, in source order;
/// keys, which fit in memory, are sorted; vectors are gathered from the spool in that order. So memory grows with the
/// words, not with the numbers. The model's bytes do not depend on the number of threads.
///
/// Errors: bad_source, conflict, io; interrupted once `stop` is set. After any of them, and after an exception, what
/// was at options.model_dir is as it was, and no file of the attempt is left.
Result<Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                       const std::function<void(const std::string&)>& say);

}  // namespace gloved::convert
