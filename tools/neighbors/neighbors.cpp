#include "tools/neighbors/neighbors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/publish.hpp"
#include "common/output_file.hpp"
#include "common/progress.hpp"
#include "kernels/registry.hpp"
#include "tools/neighbors/nearest_rows.hpp"
#include "tools/neighbors/parts.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::neighbors {
namespace {

using format::Model;
using format::Neighbors;
using format::NeighborsWriter;
using format::Row;
using format::RowRange;
using Clock = std::chrono::steady_clock;

constexpr ProgressUnit kWords = {"words", 1};

/// Rows from one call of OnRows to the next.
constexpr std::size_t kRowsPerCall = 128;

/// Fewer queries save less by a fine plane than it takes to make one.
constexpr std::size_t kFinePlaneQueries = 4096;

/// Answers queries with an engine, which it makes when the first is asked.
class Computer {
  public:
    Computer(const Model& model, const Settings& settings, const std::atomic<bool>& stop)
        : model_(model), settings_(settings), stop_(stop) {}

    /// NearestRows::ask.
    Status ask(std::size_t first, std::size_t last, const MakeQuery& make, const TakeHits& take) {
        if (Status made = make_engine(); !made) return made;
        const auto begun = Clock::now();
        Status asked = nearest_->ask(first, last, make, take, stop_);
        times_.computing += seconds_since(begun);
        return asked;
    }

    /// The lists of the rows in `range`, shape (range.size(), k). `on_rows` counts them after
    /// `done` others.
    Result<std::vector<Row>> lists_of(RowRange range, std::size_t done, const OnRows& on_rows) {
        const std::size_t k = settings_.k;
        std::vector<Row> lists(range.size() * k, format::kNoRow);
        const auto make = [&](std::size_t row, kernels::Query& query) {
            return make_row_query(model_, row, k, query);
        };
        const auto take = [&](std::size_t row, std::span<const kernels::Hit> hits) -> Status {
            Row* out = lists.data() + (row - range.first) * k;
            for (const kernels::Hit& hit : hits) *out++ = hit.row;
            const std::size_t taken = row + 1 - range.first;
            if (taken % kRowsPerCall == 0 || row + 1 == range.last) on_rows(done + taken);
            return {};
        };
        if (Status asked = ask(range.first, range.last, make, take); !asked) return asked.error();
        return lists;
    }

    /// Those of the engine's start and of computing.
    const Times& times() const { return times_; }
    /// A line about the engine; empty if none was needed.
    std::string description() const { return engine_ ? engine_->description() : std::string(); }

  private:
    Status make_engine() {
        if (engine_) return {};
        const auto begun = Clock::now();
        auto made = kernels::make_engine(settings_.engine, model_, settings_.engine_options);
        if (!made) return made.error();
        engine_ = *std::move(made);
        nearest_.emplace(*engine_, settings_.engine_options.threads);
        times_.engine = seconds_since(begun);
        return {};
    }

    const Model& model_;
    const Settings& settings_;
    const std::atomic<bool>& stop_;
    std::unique_ptr<kernels::Engine> engine_;
    std::optional<NearestRows> nearest_;
    Times times_;
};

/// Computes the missing parts of a share.
Result<Times> compute_missing(const Model& model, const Settings& settings, const Parts& parts,
                              const Share& share, const std::atomic<bool>& stop, const Say& say) {
    const auto missing = list_missing(parts, share, stop, say);
    if (!missing) return missing.error();
    const auto computed = [&] {
        Progress progress("computing", count_rows(parts, *missing), kWords);
        std::size_t next = 0;
        return compute_drawn(
            model, settings, parts, *missing, [&] { return next++; },
            [&](std::size_t rows) { progress.update(rows); }, stop);
    }();
    if (!computed) return computed.error();
    if (computed->rows != 0)
        say(fmt::format("{}; {}", describe_rate(computed->rows, computed->times.computing),
                        computed->engine));
    return computed->times;
}

/// Refuses (conflict) to go on if another model has taken the directory's name since `model` was
/// opened.
Status check_same(const Model& model, const std::string& model_dir) {
    const auto named = Model::open(model_dir);
    if (!named) return named.error();
    if (named->generation() == model.generation()) return {};
    return conflict("{}: the model was replaced while its neighbors were made; try again",
                    model_dir);
}

/// Begins the neighbors file of a whole model.
Result<NeighborsWriter> begin_file(const Model& model, const Settings& settings, UniqueFd file,
                                   const std::string& path) {
    return NeighborsWriter::create(std::move(file), path,
                                   {model.rows(),
                                    static_cast<std::uint32_t>(model.dim()),
                                    model.generation(),
                                    static_cast<std::uint32_t>(settings.k),
                                    {0, model.rows()},
                                    0});
}

/// Writes all parts, one after the other, and the header.
Status append_parts(NeighborsWriter& writer, const Parts& parts, const std::atomic<bool>& stop) {
    for (std::size_t number = 0; number < parts.count(); ++number) {
        if (stop) return source::interrupted();
        const auto part = parts.read(number);
        if (!part) return part.error();
        if (!*part) {
            const RowRange rows = parts.range(number);
            return error_with(ErrorCode::mismatch,
                              "{}: this part, of rows {} to {}, is missing; compute it (--part) "
                              "before --join",
                              parts.path_of(number), rows.first, rows.last - 1);
        }
        if (Status appended = writer.append((*part)->lists()); !appended) return appended;
    }
    return writer.finish();
}

/// Joins all parts and publishes the neighbors file.
Status join(const Model& model, const Settings& settings, const Parts& parts,
            const std::atomic<bool>& stop) {
    auto staging = format::AddedFileStaging::create(settings.model_dir, format::kAddedNeighbors);
    if (!staging) return staging.error();
    if (Status same = check_same(model, settings.model_dir); !same) return same;
    auto file = staging->file();
    if (!file) return file.error();
    auto writer = begin_file(model, settings, *std::move(file),
                             staging->path() + "/" + format::kNewNeighborsFile);
    if (!writer) return writer.error();
    if (Status appended = append_parts(*writer, parts, stop); !appended) return appended;
    if (stop) return source::interrupted();
    return staging->publish();
}

/// The model's neighbors file with intact lists; nothing if it has none.
Result<std::optional<Neighbors>> open_sound(const Model& model) {
    auto there = Neighbors::open(model);
    if (!there || !*there) return there;
    if (Status sound = (*there)->verify(); !sound) return sound.error();
    return there;
}

Result<Neighbors> open_made(const Model& model) {
    auto made = Neighbors::open(model);
    if (!made) return made.error();
    if (*made) return **std::move(made);
    return error_with(ErrorCode::io, "{}/{}: was removed as soon as it was made", model.path(),
                      format::kNeighborsFile);
}

void say_times(const Settings& settings, const Times& times, const Say& say) {
    if (!settings.times) return;
    say(fmt::format(
        "engine {:.1f} ms, computing {:.1f} ms, writing parts {:.1f} ms, joining {:.1f} ms",
        times.engine * 1e3, times.computing * 1e3, times.writing * 1e3, times.joining * 1e3));
}

/// A neighbors file that has no name and lies in memory. `fill` writes and finishes it.
template <class Fill>
Result<Neighbors> make_unstored(const Model& model, const Settings& settings, Fill fill) {
    const std::string name = model.path() + "/" + format::kNeighborsFile + " (in memory)";
    UniqueFd file(::memfd_create(format::kNeighborsFile, MFD_CLOEXEC));
    UniqueFd copy(file ? ::fcntl(file.get(), F_DUPFD_CLOEXEC, 0) : -1);
    if (!copy) return system_error(name, "cannot create", errno);
    auto writer = begin_file(model, settings, std::move(copy), name);
    if (!writer) return writer.error();
    if (Status filled = fill(*writer); !filled) return filled.error();
    return Neighbors::read(std::move(file), name, model);
}

/// The lists of all rows, computed at once, without parts.
Result<Neighbors> compute_unstored(const Model& model, const Settings& settings,
                                   const std::atomic<bool>& stop, const Say& say) {
    Computer computer(model, settings, stop);
    const auto compute = [&](NeighborsWriter& writer) -> Status {
        Progress progress("computing", model.rows(), kWords);
        for (std::size_t first = 0; first < model.rows(); first += settings.part_rows) {
            const RowRange range = {first, std::min(first + settings.part_rows, model.rows())};
            const auto lists =
                computer.lists_of(range, first, [&](std::size_t rows) { progress.update(rows); });
            if (!lists) return lists.error();
            if (Status appended = writer.append(*lists); !appended) return appended;
        }
        if (Status whole = model.verify_sizes(); !whole) return whole;
        return writer.finish();
    };
    auto made = make_unstored(model, settings, compute);
    if (!made) return made;
    say(fmt::format("{}; {}", describe_rate(model.rows(), computer.times().computing),
                    computer.description()));
    say_times(settings, computer.times(), say);
    return made;
}

/// Whether the neighbors file can be stored. If it need not be, says why it cannot. Errors as
/// AddedFileStaging::create, if it must be.
Result<bool> can_store(const Settings& settings, Storing storing, const Say& say) {
    const auto place =
        format::AddedFileStaging::create(settings.model_dir, format::kAddedNeighbors);
    if (place) return true;
    const Error& error = place.error();
    if (storing == Storing::if_possible) {
        say(fmt::format("{}; the lists are not stored{}", error.message,
                        settings.parts_dir.empty()
                            ? ""
                            : fmt::format(", and {} keeps the parts", settings.parts_dir)));
        return false;
    }
    if (error.code != ErrorCode::io) return error;
    return error_with(error.code,
                      "{}; gloved-neighbors --output, --hubs, --mutual and --compare work without "
                      "storing",
                      error.message);
}

/// Joins the parts, removes them, and opens the file.
Result<Neighbors> store(const Model& model, const Settings& settings, const Parts& parts,
                        const std::atomic<bool>& stop, const Say& say) {
    if (Status joined = join(model, settings, parts, stop); !joined) return joined.error();
    parts.remove();
    auto made = open_made(model);
    if (!made) return made;
    say(fmt::format("{}/{}: {} neighbours of {} words, {} bytes, generation {}", model.path(),
                    format::kNeighborsFile, made->k(), model.rows(), made->header().file_bytes(),
                    format::hex(model.generation())));
    return made;
}

/// The lists in the parts, which stay unless the lists are stored.
Result<Neighbors> finish(const Model& model, const Settings& settings, const Parts& parts,
                         bool storable, const std::atomic<bool>& stop, const Say& say,
                         Times times) {
    const auto begun = Clock::now();
    const auto fill = [&](NeighborsWriter& writer) { return append_parts(writer, parts, stop); };
    auto made =
        storable ? store(model, settings, parts, stop, say) : make_unstored(model, settings, fill);
    if (!made) return made;
    times.joining = seconds_since(begun);
    say_times(settings, times, say);
    return made;
}

}  // namespace

Result<Parts> open_parts(const Model& model, const Settings& settings, Access access) {
    return Parts::open(model, settings.k, settings.part_rows, settings.parts_dir, access);
}

Result<std::optional<Neighbors>> find_stored(const Model& model, const Settings& settings,
                                             const Say& say) {
    auto there = open_sound(model);
    if (!there && there.error().code == ErrorCode::io) return there.error();
    if (!there) say(there.error().message);
    if (!there || !*there || (*there)->k() < settings.k) return std::optional<Neighbors>();
    say(fmt::format("{}/{}: {} neighbours of {} words are there already", model.path(),
                    format::kNeighborsFile, (*there)->k(), model.rows()));
    Parts::sweep(model, (*there)->k(), settings.part_rows, settings.parts_dir);
    return there;
}

Result<std::vector<std::size_t>> list_missing(const Parts& parts, const Share& share,
                                              const std::atomic<bool>& stop, const Say& say) {
    std::vector<std::size_t> missing;
    std::size_t count = 0;
    for (std::size_t number = share.index - 1; number < parts.count(); number += share.count) {
        if (stop) return source::interrupted();
        ++count;
        const auto part = parts.read(number);
        if (!part && part.error().code == ErrorCode::io) return part.error();
        if (Status ours = parts.check_ours(number); !ours) return ours.error();
        if (!part) say(part.error().message + "; this part is computed again");
        if (!part || !*part) missing.push_back(number);
    }
    if (missing.size() < count) {
        say(fmt::format("{}: {} of {} parts are there already", parts.path(),
                        count - missing.size(), count));
    }
    return missing;
}

std::size_t count_rows(const Parts& parts, std::span<const std::size_t> numbers) {
    std::size_t rows = 0;
    for (const std::size_t number : numbers) rows += parts.range(number).size();
    return rows;
}

std::string describe_rate(std::size_t rows, double seconds) {
    return fmt::format("{} words in {:.2f} s, {:.0f} a second", rows, seconds,
                       static_cast<double>(rows) / std::max(seconds, 1e-9));
}

Result<Computed> compute_drawn(const Model& model, const Settings& settings, const Parts& parts,
                               std::span<const std::size_t> missing, const DrawIndex& draw,
                               const OnRows& on_rows, const std::atomic<bool>& stop) {
    Computed computed;
    Computer computer(model, settings, stop);
    for (std::size_t index = draw(); index < missing.size(); index = draw()) {
        const std::size_t number = missing[index];
        const RowRange range = parts.range(number);
        const auto lists =
            computer.lists_of(range, count_rows(parts, missing.first(index)), on_rows);
        if (!lists) return lists.error();
        computed.rows += range.size();
        // A file that became shorter reads as zeros.
        if (Status whole = model.verify_sizes(); !whole) return whole.error();
        const auto begun = Clock::now();
        if (Status written = parts.write(number, *lists); !written) return written.error();
        computed.times.writing += seconds_since(begun);
    }
    computed.times.engine = computer.times().engine;
    computed.times.computing = computer.times().computing;
    computed.engine = computer.description();
    return computed;
}

Status check_can_store(const Settings& settings) {
    const auto checked = can_store(settings, Storing::required, {});
    return checked ? Status() : Status(checked.error());
}

Result<Neighbors> make_neighbors(const Model& model, const Settings& settings, Storing storing,
                                 const std::atomic<bool>& stop, const Say& say) {
    auto stored = find_stored(model, settings, say);
    if (!stored) return stored.error();
    if (*stored) return **std::move(stored);
    // Told before the long computation.
    const auto storable = can_store(settings, storing, say);
    if (!storable) return storable.error();
    if (!*storable && settings.parts_dir.empty())
        return compute_unstored(model, settings, stop, say);
    const auto parts = open_parts(model, settings, Access::alone);
    if (!parts) return parts.error();
    const auto times = compute_missing(model, settings, *parts, {}, stop, say);
    if (!times) return times.error();
    return finish(model, settings, *parts, *storable, stop, say, *times);
}

Status compute_share(const Model& model, const Settings& settings, const Share& share,
                     const std::atomic<bool>& stop, const Say& say) {
    const auto parts = open_parts(model, settings, Access::shared);
    if (!parts) return parts.error();
    const auto times = compute_missing(model, settings, *parts, share, stop, say);
    if (!times) return times.error();
    say_times(settings, *times, say);
    return {};
}

Result<Neighbors> join_parts(const Model& model, const Settings& settings, Storing storing,
                             const std::atomic<bool>& stop, const Say& say, Times times) {
    const auto storable = can_store(settings, storing, say);
    if (!storable) return storable.error();
    const auto parts = open_parts(model, settings, Access::alone);
    if (!parts) return parts.error();
    return finish(model, settings, *parts, *storable, stop, say, times);
}

Status answer_queries(const Model& model, const Settings& settings, const Queries& queries,
                      const ListOutput& output, const std::atomic<bool>& stop, const Say& say) {
    auto file = OutputFile::create(output.path, stop);
    if (!file) return file.error();
    const ListText text(model, output.format, settings.k);
    if (Status written = file->write(text.head(queries.size())); !written) return written;
    Settings suited = settings;
    if (queries.size() < kFinePlaneQueries)
        suited.engine_options.fine_plane = kernels::FinePlane::never;
    Computer computer(model, suited, stop);
    std::size_t without_answer = 0;
    {
        Progress progress("answering", queries.size(), {"queries", 1});
        std::string lines;
        const auto make = [&](std::size_t number, kernels::Query& query) {
            return queries.make(model, number, settings.k, query);
        };
        const auto take = [&](std::size_t number, std::span<const kernels::Hit> hits) -> Status {
            if (hits.empty()) ++without_answer;
            lines.clear();
            text.append(lines, number, queries.name(number), hits);
            progress.update(number + 1);
            return file->write(lines);
        };
        if (Status asked = computer.ask(0, queries.size(), make, take); !asked) return asked;
    }
    if (Status whole = model.verify_sizes(); !whole) return whole;
    if (Status synced = file->sync(); !synced) return synced;
    if (Status published = file->publish(); !published) return published;
    say(fmt::format("{}: {} neighbours of {} queries, {} of which have none; {:.2f} s; {}",
                    output.path, settings.k, queries.size(), without_answer,
                    computer.times().computing, computer.description()));
    return {};
}

}  // namespace gloved::neighbors
