// gloved-client: asks the daemon one query from its arguments, or from stdin requests a line or the
// original protocol's queries.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "client/health.hpp"
#include "client/lines_run.hpp"
#include "client/option_values.hpp"
#include "client/original_session.hpp"
#include "client/patient_connection.hpp"
#include "client/peer_options.hpp"
#include "client/query_line.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "common/terminal.hpp"
#include "common/version.hpp"

namespace {

namespace po = boost::program_options;
using namespace gloved;

constexpr int kDone = 0;
constexpr int kAtFault = 1;
constexpr int kUsage = 2;

constexpr const char* kSynopsis = R"(Usage: gloved-client [OPTIONS] [EXPR | VERB ...]
Asks a gloved for the words nearest to an expression, or sends it any request.

)";

constexpr const char* kExamples = R"(
Options end at the first word of the query. What follows is joined by spaces. It is sent as it stands if it
begins with a verb; otherwise it is an expression for NEAR.

  gloved-client king                            the nearest words and their scores
  gloved-client --count 3 king - man + woman    three of them
  gloved-client '2 * ( paris - france ) + rome' the shell leaves * and ( ) alone inside quotes
  gloved-client SIM king queen                  any request; HELP lists them
  gloved-client --json king                     the daemon's answer as a JSON object
  gloved-client --retry 60 PING                 waits for a daemon that is being started
  gloved-client --lines < requests              each line is a request; every reply whole, in order
  gloved-client --health                        for monitoring: is it serving, and what
  echo 'king - man + woman ! 1' | gloved-client the original protocol, on stdin

Exit status: 0 done, 1 the daemon refused or cannot be reached, 2 wrong usage.
)";

struct Settings {
    client::PeerOptions peer_options;
    std::optional<std::string> count;
    bool json = false;
    bool lines = false;
    bool health = false;
    std::vector<std::string> query;
    client::PeerSettings peer;
};

int fail(int code, const std::string& message) {
    say_on_stderr("gloved-client", message);
    return code;
}

/// How many leading arguments are options and their values. The query begins at the first that is
/// neither, so that `king - man` reaches it unharmed.
std::size_t option_arguments(const std::vector<std::string>& arguments,
                             const po::options_description& options) {
    std::size_t i = 0;
    while (i < arguments.size() && arguments[i].size() > 1 && arguments[i].front() == '-' &&
           arguments[i] != "--") {
        // No value follows a «--name=value», which is no option's name either.
        const auto* option = arguments[i].starts_with("--")
                                 ? options.find_nothrow(arguments[i].substr(2), false)
                                 : nullptr;
        i += option != nullptr && option->semantic()->max_tokens() > 0 ? 2U : 1U;
    }
    return std::min(i, arguments.size());
}

/// The exit status of a run that says whether all was well.
int status_of(const Result<bool>& all_well) {
    if (!all_well) return fail(kAtFault, all_well.error().message);
    return *all_well ? kDone : kAtFault;
}

int ask_once(const Settings& settings) {
    std::optional<std::size_t> count;
    if (settings.count) {
        const auto parsed = client::parse_whole_number("--count", *settings.count,
                                                       std::numeric_limits<std::uint32_t>::max());
        if (!parsed) return fail(kUsage, parsed.error().message);
        count = *parsed;
    }
    auto line = client::query_line(settings.query, count);
    if (!line) return fail(kUsage, line.error().message);
    client::PatientConnection peer(settings.peer);
    if (settings.peer.json)
        return status_of(client::run_line(peer, *std::move(line), STDOUT_FILENO));
    const auto reply = peer.ask(*line);
    if (!reply) return fail(kAtFault, reply.error().message);
    if (!reply->status.ok)
        return fail(kAtFault, fmt::format("{}: {}", reply->status.code, reply->status.message));
    for (const std::string& answer : reply->lines) std::cout << answer << '\n';
    return kDone;
}

int run_lines(const Settings& settings) {
    client::PatientConnection peer(settings.peer);
    return status_of(client::run_lines(peer, STDIN_FILENO, STDOUT_FILENO));
}

int run_original(const Settings& settings) {
    client::PatientConnection peer(settings.peer);
    const auto ask = [&](std::string_view line) { return peer.ask(line); };
    const auto all_well = client::run_original_session(std::cin, std::cout, std::cerr, ask);
    // A stream takes a directory, or a disk that fails, for the end of the input.
    if (all_well && std::ferror(stdin) != 0)
        return fail(kAtFault, "the input cannot be read to its end");
    return status_of(all_well);
}

int tell_health(const Settings& settings) {
    const client::HealthReport report = client::ask_health(settings.peer);
    // The daemon's message may hold anything: this is one line.
    std::cout << without_control_bytes(report.line) << '\n';
    return static_cast<int>(report.health);
}

po::options_description describe_options(Settings& settings) {
    po::options_description options("Options");
    settings.peer_options.add_to(options);
    auto add = options.add_options();
    add("count", po::value<std::string>()->value_name("K")->notifier([&](const std::string& k) {
        settings.count = k;
    }),
        "how many words answer an expression; default 10");
    add("json", po::bool_switch(&settings.json), "answers as JSON, an object a line; refusals too");
    add("lines", po::bool_switch(&settings.lines),
        "each line of stdin is a request; prints every reply as it comes");
    add("health", po::bool_switch(&settings.health),
        "how the daemon is, in a line; exit status 0 serving, 1 starting or degraded, 2 "
        "unreachable; --timeout is 2 "
        "here");
    add("help", "this text");
    add("version", "the version");
    return options;
}

/// What is wrong with the options beside each other.
Status check(const Settings& settings) {
    const auto wrong = [](const char* message) { return Error{ErrorCode::bad_request, message}; };
    if (settings.health && (settings.lines || settings.json || settings.count ||
                            settings.peer_options.retry_given() || !settings.query.empty()))
        return wrong("--health goes with --socket and --timeout alone");
    if (settings.lines && !settings.query.empty())
        return wrong("--lines takes requests from stdin, not from arguments");
    if (settings.query.empty() && settings.count) {
        return wrong(settings.lines
                         ? "--count goes with a query; with --lines each request has its own k="
                         : "--count needs a query; on stdin every answer has ten words");
    }
    if (settings.query.empty() && !settings.lines && settings.json) {
        return wrong("--json needs a query or --lines; the original protocol has its own form");
    }
    return {};
}

int run_program(int argc, char** argv) {
    // A peer or a pager that goes away is an error to report, not a reason to die silently.
    ::signal(SIGPIPE, SIG_IGN);
    const TerminalOutput terminal_output;

    Settings settings;
    const po::options_description options = describe_options(settings);
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto begin_of_query =
        arguments.begin() + static_cast<std::ptrdiff_t>(option_arguments(arguments, options));
    settings.query.assign(begin_of_query, arguments.end());
    if (!settings.query.empty() && settings.query.front() == "--")
        settings.query.erase(settings.query.begin());
    arguments.erase(begin_of_query, arguments.end());

    po::variables_map given;
    try {
        const int style =
            po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(arguments).options(options).style(style).run(), given);
        po::notify(given);
    } catch (const po::error& error) {
        return fail(kUsage, fmt::format("{}; try --help", error.what()));
    }
    if (given.count("help") != 0) {
        std::cout << kSynopsis << options << kExamples;
        return kDone;
    }
    if (given.count("version") != 0) {
        std::cout << "gloved-client " << kProgramVersion << '\n';
        return kDone;
    }
    if (const Status checked = check(settings); !checked)
        return fail(kUsage, checked.error().message);
    auto peer = settings.peer_options.settings(settings.json, settings.health ? "2" : "10");
    if (!peer) return fail(kUsage, peer.error().message);
    settings.peer = *std::move(peer);

    if (settings.health) return tell_health(settings);
    if (settings.lines) return run_lines(settings);
    return settings.query.empty() ? run_original(settings) : ask_once(settings);
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-client", run_program, argc, argv);
}
