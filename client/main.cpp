// gloved-client: asks the daemon one query from its arguments, or the original protocol's queries from stdin.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "client/connection.hpp"
#include "client/original_session.hpp"
#include "client/query_line.hpp"
#include "common/expr/expression.hpp"
#include "common/quoting.hpp"
#include "common/version.hpp"

namespace {

namespace po = boost::program_options;
using namespace gloved;

constexpr int kDone = 0;
constexpr int kAtFault = 1;
constexpr int kUsage = 2;

constexpr double kMaxTimeoutSeconds = 86400;

constexpr const char* kSynopsis = R"(Usage: gloved-client [OPTIONS] [EXPR | VERB ...]
Asks a gloved for the words nearest to an expression, or sends it any request.

)";

constexpr const char* kExamples = R"(
Options end at the first word of the query. What follows is sent as it stands, joined by spaces.

  gloved-client king                            the nearest words and their scores
  gloved-client --count 3 king - man + woman    three of them
  gloved-client '2 * ( paris - france ) + rome' the shell leaves * and ( ) alone inside quotes
  gloved-client SIM king queen                  any request; HELP lists them
  echo 'king - man + woman ! 1' | gloved-client the original protocol, on stdin

Exit status: 0 done, 1 the daemon refused or cannot be reached, 2 wrong usage.
)";

struct Settings {
    std::string socket;
    std::optional<std::size_t> count;
    std::chrono::milliseconds timeout{};
    std::vector<std::string> query;
};

int fail(int code, const std::string& message) {
    fmt::print(stderr, "gloved-client: {}\n", message);
    return code;
}

/// How many leading arguments are options and their values. The query begins at the first that is neither, so that
/// `king - man` reaches it unharmed.
std::size_t option_arguments(const std::vector<std::string>& arguments, const po::options_description& options) {
    std::size_t i = 0;
    while (i < arguments.size() && arguments[i].size() > 1 && arguments[i].front() == '-' && arguments[i] != "--") {
        // No value follows a «--name=value», which is no option's name either.
        const auto* option =
            arguments[i].starts_with("--") ? options.find_nothrow(arguments[i].substr(2), false) : nullptr;
        i += option != nullptr && option->semantic()->max_tokens() > 0 ? 2U : 1U;
    }
    return std::min(i, arguments.size());
}

Result<std::size_t> parse_count(const std::string& text) {
    std::size_t count = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (fault != std::errc() || end != text.data() + text.size() || count == 0) {
        return Error{ErrorCode::bad_request, "--count takes a whole number from 1, not " + printable(text)};
    }
    return count;
}

Result<std::chrono::milliseconds> parse_timeout(const std::string& text) {
    const auto seconds = expr::parse_number(text);
    if (!seconds || !(*seconds >= 0.001 && *seconds <= kMaxTimeoutSeconds)) {
        return Error{ErrorCode::bad_request, fmt::format("--timeout takes seconds from 0.001 to {:.0f}, not {}",
                                                         kMaxTimeoutSeconds, printable(text))};
    }
    return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(*seconds * 1000));
}

int ask_once(const Settings& settings) {
    const auto line = client::query_line(settings.query, settings.count);
    if (!line) return fail(kUsage, line.error().message);
    auto connection = client::Connection::open(client::socket_paths(settings.socket), settings.timeout);
    if (!connection) return fail(kAtFault, connection.error().message);
    const auto reply = connection->ask(*line);
    if (!reply) return fail(kAtFault, reply.error().message);
    if (!reply->status.ok) return fail(kAtFault, fmt::format("{}: {}", reply->status.code, reply->status.message));
    for (const std::string& answer : reply->lines) std::cout << answer << '\n';
    return std::cout.flush() ? kDone : fail(kAtFault, "cannot write the answer");
}

int run_original(const Settings& settings) {
    auto connection = client::Connection::open(client::socket_paths(settings.socket), settings.timeout);
    if (!connection) return fail(kAtFault, connection.error().message);
    const auto ask = [&](std::string_view line) { return connection->ask(line); };
    const auto well_formed = client::run_original_session(std::cin, std::cout, std::cerr, ask);
    if (!well_formed) return fail(kAtFault, well_formed.error().message);
    return *well_formed ? kDone : kAtFault;
}

}  // namespace

int main(int argc, char** argv) {
    // A peer or a pager that goes away is an error to report, not a reason to die silently.
    ::signal(SIGPIPE, SIG_IGN);

    Settings settings;
    std::string count;
    std::string timeout = "10";
    po::options_description options("Options");
    auto add = options.add_options();
    add("socket", po::value(&settings.socket)->value_name("PATH"),
        "where the daemon listens; default: $GLOVED_SOCKET, else /run/gloved/gloved.sock, else "
        "$XDG_RUNTIME_DIR/gloved.sock");
    add("count", po::value(&count)->value_name("K"), "how many words answer an expression; default 10");
    add("timeout", po::value(&timeout)->value_name("S"),
        "seconds to wait for a connection, and for each answer; default 10");
    add("help", "this text");
    add("version", "the version");

    std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto begin_of_query = arguments.begin() + static_cast<std::ptrdiff_t>(option_arguments(arguments, options));
    settings.query.assign(begin_of_query, arguments.end());
    if (!settings.query.empty() && settings.query.front() == "--") settings.query.erase(settings.query.begin());
    arguments.erase(begin_of_query, arguments.end());

    po::variables_map given;
    try {
        const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
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
    if (given.count("socket") != 0 && settings.socket.empty()) return fail(kUsage, "--socket needs a path");
    if (given.count("count") != 0) {
        const auto parsed = parse_count(count);
        if (!parsed) return fail(kUsage, parsed.error().message);
        if (settings.query.empty()) return fail(kUsage, "--count needs a query; on stdin every answer has ten words");
        settings.count = *parsed;
    }
    const auto parsed = parse_timeout(timeout);
    if (!parsed) return fail(kUsage, parsed.error().message);
    settings.timeout = *parsed;

    return settings.query.empty() ? run_original(settings) : ask_once(settings);
}
