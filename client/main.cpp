// gloved-client: sends the daemon one query from its arguments, or from stdin one request a line or
// queries in the original protocol.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "client/health.hpp"
#include "client/lines_run.hpp"
#include "client/look_up_notes.hpp"
#include "client/original_session.hpp"
#include "client/query_line.hpp"
#include "client/reply_table.hpp"
#include "client/retrying_connection.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "common/result.hpp"
#include "common/socket_places.hpp"
#include "common/table_text.hpp"
#include "common/terminal.hpp"
#include "common/wire/request.hpp"

namespace {

using namespace gloved;
using cli::kDone;
using cli::kFault;
using cli::WrongUsage;

constexpr cli::Program kProgram = {
    "gloved-client",
    R"(Usage: gloved-client [options] EXPRESSION   print the nearest words
       gloved-client [options] REQUEST      send any other request
       gloved-client [options] --lines      send each line of stdin as a request
       gloved-client [options] --health     print one line for monitoring
       gloved-client [options]              read stdin in the original protocol

Sends requests to a gloved daemon and prints its replies. An EXPRESSION is a
word or a sum of words; the reply has the nearest words, best first, with their
cosines. A REQUEST begins with its name in capitals; gloved-client HELP prints
all names.

Options come first. All other arguments are joined by blanks.

)",
    R"(
The original protocol is that of the student project from which gloved descends.
A query is WORD 0 or SUM ! 0, where ! ends the sum: "snake 0" or "king - man +
woman ! 0". With 1 instead of 0 the CPU answers first, then the daemon's engine,
for comparison. See man gloved-client.

Examples:
  gloved-client king
  gloved-client --count 3 king - man + woman
  gloved-client '2 * ( paris - france ) + italy'   quotes for the shell
  gloved-client SIM king queen                     the cosine of two words
  gloved-client --json SIM king queen
  gloved-client --format csv MATRIX king queen piano > cosines.csv
  gloved-client NEAR case=ignore unknown=skip SNAKE + qwfp
  gloved-client --retry 60 PING                    wait until the daemon answers
  gloved-client --lines < requests
  gloved-client --health
  echo 'king - man + woman ! 1' | gloved-client    the original protocol

Exit status:
  0  success
  1  the daemon refused a request or could not be reached
  2  wrong usage
Exit status with --health:
  0  the daemon serves
  1  it starts, stops, hangs, or has a fault: the line says which
  2  no daemon can be reached, or wrong usage
)"};

constexpr std::chrono::seconds kHealthTimeout{2};

int fail(const std::string& message) {
    kProgram.say(message);
    return kFault;
}

/// Counts the leading arguments that are options or their values. The query begins at the first
/// that is neither, so that `king - man` stays whole.
std::size_t option_arguments(const std::vector<std::string>& arguments,
                             const boost::program_options::options_description& options) {
    std::size_t i = 0;
    while (i < arguments.size() && arguments[i].size() > 1 && arguments[i].front() == '-' &&
           arguments[i] != "--") {
        // No value follows a «--name=value», which is not an option's name either.
        const auto* option = arguments[i].starts_with("--")
                                 ? options.find_nothrow(arguments[i].substr(2), false)
                                 : nullptr;
        i += option != nullptr && option->semantic()->max_tokens() > 0 ? 2U : 1U;
    }
    return std::min(i, arguments.size());
}

int status_of(const Result<bool>& all_well) {
    if (!all_well) return fail(all_well.error().message);
    return *all_well ? kDone : kFault;
}

/// The style of --format; none if replies are to be printed as they come.
std::optional<RowStyle> style_of(const cli::CommandLine& line) {
    if (!line.given("format")) return std::nullopt;
    return line.choice<RowStyle>("format", {{"csv", kCsv}, {"tsv", kTsv}});
}

Result<wire::StatusLine> print(client::RetryingConnection& peer, const std::string& request,
                               std::optional<RowStyle> style) {
    if (!style) return client::print_answer(peer, request, STDOUT_FILENO);
    auto table = client::ReplyTable::create(request, *style);
    if (!table) return table.error();
    return client::print_table(peer, request, *std::move(table), STDOUT_FILENO);
}

int ask_once(const std::vector<std::string>& query, std::optional<std::size_t> count,
             std::optional<RowStyle> style, const client::PeerSettings& settings) {
    auto request = client::query_line(query, count);
    if (!request) throw WrongUsage(request.error().message);
    if (const std::string note = client::note_on_verb(query); !note.empty()) kProgram.say(note);
    client::RetryingConnection peer(settings);
    const auto status = print(peer, *request, style);
    if (!status) return fail(status.error().message);
    // The object tells all.
    if (settings.json) return status->ok ? kDone : kFault;
    if (!status->ok) return fail(fmt::format("{}: {}", status->code, status->message));
    for (const std::string& note : client::look_up_notes(*request, *status)) kProgram.say(note);
    return kDone;
}

int run_lines(const client::PeerSettings& settings) {
    client::RetryingConnection peer(settings);
    return status_of(client::run_lines(peer, STDIN_FILENO, STDOUT_FILENO));
}

int run_original(const client::PeerSettings& settings) {
    client::RetryingConnection peer(settings);
    const auto ask = [&](std::string_view line) { return peer.ask(line); };
    const auto all_well = client::run_original_session(std::cin, std::cout, std::cerr, ask);
    // std::cin reports a directory or a failing disk as the end of the input.
    if (all_well && std::ferror(stdin) != 0) return fail("cannot read stdin to its end");
    return status_of(all_well);
}

int print_health(client::PeerSettings settings, bool timeout_given) {
    if (!timeout_given) settings.timeout = kHealthTimeout;
    const client::HealthReport report = client::ask_health(settings);
    // The daemon's message may hold line ends: this prints one line.
    std::cout << without_control_bytes(report.line) << '\n';
    return static_cast<int>(report.health);
}

/// What an argument is that looks like an option and is none.
std::string hint_on_unknown(std::string_view name) {
    const std::string_view bare = name.starts_with("--") ? name.substr(2) : "";
    if (const auto verb = wire::find_verb_with_option(bare)) {
        return fmt::format("; in a request it stands behind the name, as {} {}=VALUE ...",
                           wire::verb_name(*verb), bare);
    }
    return "; a query that begins with '-' needs -- before it";
}

cli::Options describe_options() {
    cli::Options options;
    options.unknown_hint = hint_on_unknown;
    cli::OptionAdder add(options.shown);
    add("socket", cli::value("PATH"),
        "the daemon's socket (default: $GLOVED_SOCKET; if that is not set, "
        "$XDG_RUNTIME_DIR/gloved.sock, then /run/gloved/gloved.sock)");
    add("timeout", cli::value("S", "10"), "seconds to wait for a connection and for each reply");
    add("retry", cli::value("S", "0"),
        "seconds to keep trying if no daemon answers or it is busy or restarting; each reply "
        "starts the count again");
    add("count", cli::value("K", "10"), "number of words to print for EXPRESSION");
    add("format", cli::value("csv|tsv"),
        "print the answer as a table with headings, in which commas or TABs stand between cells "
        "and words with quotes are quoted, as R, pandas and spreadsheets expect. Answers of MATRIX "
        "and VEC get their words as labels");
    add("json", "print each reply, also a refusal, as a JSON object on one line of stdout");
    add("lines", "send each line of stdin as a request and print the replies in that order");
    add("health",
        "print the daemon's health on one line; the exit status tells it too. --timeout is 2 "
        "unless given");
    return options;
}

/// Where the daemon listens, and how long to wait for it.
client::PeerSettings peer_settings(const cli::CommandLine& line) {
    return {sockets_to_ask(line.nonempty("socket", "a path")),
            line.seconds("timeout", cli::kMinSeconds), line.seconds("retry", 0),
            line.given("json")};
}

/// Checks that the options go together.
void check(const cli::CommandLine& line, bool has_query) {
    line.excludes("health", {"lines", "json", "count", "retry", "format"});
    line.excludes("format", {"json", "lines"});
    if (has_query && line.given("health")) throw WrongUsage("--health takes no query");
    if (has_query && line.given("lines"))
        throw WrongUsage("--lines reads requests from stdin, not from arguments");
    if (has_query) return;
    if (line.given("count")) {
        throw WrongUsage(line.given("lines")
                             ? "--count needs a query; with --lines write k= in each request"
                             : "--count needs a query; on stdin every answer has ten words");
    }
    if (line.given("format")) throw WrongUsage("--format needs a query");
    if (line.given("json") && !line.given("lines"))
        throw WrongUsage("--json needs a query or --lines; the original protocol is plain text");
}

int run_program(int argc, char** argv) {
    cli::let_writes_fail();
    const TerminalOutput terminal_output;

    const cli::Options options = describe_options();
    std::vector<std::string> arguments = cli::arguments_of(argc, argv);
    const auto begin_of_query =
        arguments.begin() + static_cast<std::ptrdiff_t>(option_arguments(arguments, options.shown));
    std::vector<std::string> query(begin_of_query, arguments.end());
    const bool has_dashes = !query.empty() && query.front() == "--";
    if (has_dashes) query.erase(query.begin());
    arguments.erase(begin_of_query, arguments.end());

    return cli::run(kProgram, options, arguments, [&](const cli::CommandLine& line) {
        if (has_dashes && query.empty())
            throw WrongUsage("no query behind --; to ask for the word --: gloved-client -- --");
        check(line, !query.empty());
        const client::PeerSettings settings = peer_settings(line);
        if (line.given("health")) return print_health(settings, line.given("timeout"));
        if (line.given("lines")) return run_lines(settings);
        if (query.empty()) return run_original(settings);
        std::optional<std::size_t> count;
        if (line.given("count"))
            count = line.count("count", 1, std::numeric_limits<std::uint32_t>::max());
        return ask_once(query, count, style_of(line), settings);
    });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-client", run_program, argc, argv);
}
