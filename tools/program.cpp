#include "tools/program.hpp"

#include <signal.h>

#include <iostream>

#include "common/program_main.hpp"
#include "common/version.hpp"

namespace gloved::tools {
namespace {

namespace po = boost::program_options;

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

}  // namespace

void Program::say(const std::string& message) const { say_on_stderr(name, message); }

int Program::wrong_usage(const std::string& what) const {
    say(what + "; " + name + " --help explains");
    return kUsage;
}

std::optional<int> Program::read(int argc, char** argv, const po::options_description& visible,
                                 const po::options_description& all,
                                 const po::positional_options_description& positional,
                                 po::variables_map& values) const {
    try {
        constexpr int kStyle =
            po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(argc, argv)
                      .options(all)
                      .positional(positional)
                      .style(kStyle)
                      .run(),
                  values);
        po::notify(values);
    } catch (const po::error& error) {
        return wrong_usage(error.what());
    }
    if (values.count("help") != 0) {
        std::cout << help_head << visible << help_tail;
        return kDone;
    }
    if (values.count("version") != 0) {
        std::cout << name << " " << kProgramVersion << "\n";
        return kDone;
    }
    return std::nullopt;
}

const std::atomic<bool>& stop_on_signals(SecondSignal second) {
    struct sigaction action {};
    action.sa_handler = [](int) { stop.store(true, std::memory_order_relaxed); };
    if (second == SecondSignal::ends_at_once) action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
    return stop;
}

void let_writes_fail() {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace gloved::tools
