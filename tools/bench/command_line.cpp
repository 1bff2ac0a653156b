#include "tools/bench/command_line.hpp"

#include <utility>

#include "common/version.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/lists.hpp"

namespace gloved::bench {

namespace po = boost::program_options;

namespace {

constexpr std::uint64_t kMaxThreads = 4096;
constexpr std::uint64_t kMaxDevices = 1024;

}  // namespace

Error wrong_usage(std::string message) { return {ErrorCode::bad_request, std::move(message)}; }

Result<std::optional<CommandLine>> CommandLine::read(int argc, char** argv,
                                                     const po::options_description& options,
                                                     std::string_view synopsis,
                                                     std::string_view examples, std::ostream& out) {
    po::variables_map values;
    try {
        po::store(po::command_line_parser(argc, argv)
                      .options(options)
                      .positional({})
                      .style(po::command_line_style::default_style &
                             ~po::command_line_style::allow_guessing)
                      .run(),
                  values);
    } catch (const po::error& error) {
        return wrong_usage(error.what());
    }
    if (values.count("help") != 0) {
        out << synopsis << options << examples;
        return std::optional<CommandLine>();
    }
    if (values.count("version") != 0) {
        out << "gloved-bench " << kProgramVersion << '\n';
        return std::optional<CommandLine>();
    }
    return std::optional(CommandLine(std::move(values)));
}

std::uint64_t CommandLine::number(const std::string& name, std::string_view digits,
                                  std::uint64_t least, std::uint64_t most) {
    const auto parsed = parse_count(name, digits, least, most);
    if (parsed) return *parsed;
    if (!fault_) fault_ = parsed.error();
    return least;
}

unsigned CommandLine::threads() {
    const auto threads = static_cast<unsigned>(count("threads", 0, kMaxThreads));
    return threads != 0 ? threads : kernels::usable_processors();
}

int CommandLine::device() { return static_cast<int>(count("device", 0, kMaxDevices)); }

TableFormat CommandLine::format() {
    const std::string format = text("format");
    if (format != "text" && format != "csv" && !fault_)
        fault_ = wrong_usage("--format takes text or csv");
    return format == "csv" ? TableFormat::csv : TableFormat::text;
}

}  // namespace gloved::bench
