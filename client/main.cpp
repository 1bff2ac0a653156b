// gloved-client: asks the daemon one query from its arguments, or the original protocol's queries from stdin.
#include <fmt/format.h>
#include <signal.h>

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

constexpr double kDefaultTimeoutSeconds = 10;
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

/// Ends the options at the first argument that is none, so that `king - man` and `- man` reach the query unharmed.
std::vector<po::option> take_query(std::vector<std::string>& arguments) {
    const std::string& first = arguments.front();
    if (first.size() > 1 && first.front() == '-' && first != "--") return {};
    if (first == "--") arguments.erase(arguments.begin());
    std::vector<po::option> query;
    for (const std::string& argument : arguments) {
        po::option word;
        word.value.push_back(argument);
        word.original_tokens.push_back(argument);
        query.push_back(std::move(word));
    }
    arguments.clear();
    return query;
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
    for (const std::string& answer : reply->lines)
        std::cout << answer << '\n';
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

    po::options_description options("Options");
    options.add_options()                                                                     //
        ("socket", po::value<std::string>()->value_name("PATH"),                              //
         "the daemon's socket; default: $GLOVED_SOCKET, else /run/gloved/gloved.sock, else "  //
         "$XDG_RUNTIME_DIR/gloved.sock")                                                      //
        ("count", po::value<std::string>()->value_name("K"),
         "how many words an expression's answer has; default 10")  //
        ("timeout", po::value<std::string>()->value_name("S"),
         "seconds to wait for the connection, and for each answer; default 10")  //
        ("help", "this text")("version", "the version");
    po::options_description all;
    all.add(options).add_options()("query", po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add("query", -1);

    Settings settings;
    try {
        po::variables_map values;
        po::store(po::command_line_parser(argc, argv)
                      .options(all)
                      .positional(positional)
                      .style(po::command_line_style::default_style & ~po::command_line_style::allow_guessing)
                      .extra_style_parser(take_query)
                      .run(),
                  values);
        if (values.count("help") != 0) {
            std::cout << kSynopsis << '\n' << options << kExamples;
            return kDone;
        }
        if (values.count("version") != 0) {
            std::cout << "gloved-client " << kProgramVersion << '\n';
            return kDone;
        }
        const auto text = [&](const char* name) {
            return values.count(name) != 0 ? values[name].as<std::string>() : "";
        };
        settings.socket = text("socket");
        if (values.count("socket") != 0 && settings.socket.empty()) return fail(kUsage, "--socket needs a path");
        if (values.count("count") != 0) {
            const auto count = parse_count(text("count"));
            if (!count) return fail(kUsage, count.error().message);
            settings.count = *count;
        }
        const auto timeout =
            parse_timeout(values.count("timeout") != 0 ? text("timeout") : fmt::to_string(kDefaultTimeoutSeconds));
        if (!timeout) return fail(kUsage, timeout.error().message);
        settings.timeout = *timeout;
        if (values.count("query") != 0) settings.query = values["query"].as<std::vector<std::string>>();
    } catch (const po::error& error) {
        return fail(kUsage, fmt::format("{}; try --help", error.what()));
    }

    if (!settings.query.empty()) return ask_once(settings);
    if (settings.count)
        return fail(kUsage, "--count goes with an expression; the original protocol always has ten words");
    return run_original(settings);
}
