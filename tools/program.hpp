// What the main functions of the tools have in common: how they read their command line, speak, and
// are stopped.
#pragma once

#include <atomic>
#include <boost/program_options.hpp>
#include <optional>
#include <string>

namespace gloved::tools {

inline constexpr int kDone = 0;
inline constexpr int kFault = 1;
inline constexpr int kUsage = 2;

/// A program as it presents itself. The texts live for ever.
struct Program {
    const char* name;
    const char* help_head;  ///< before the list of options
    const char* help_tail;  ///< behind it

    /// «NAME: message» on stderr, as one line whatever is in the message.
    void say(const std::string& message) const;
    /// Says what is wrong with the command line. Returns kUsage.
    int wrong_usage(const std::string& what) const;
    /// Reads a command line into `values`, and into the variables that `all` names. Options are
    /// written in full. --help, with the options of `visible`, and --version are answered. Returns
    /// the status to end with, where there is nothing else to do.
    std::optional<int> read(
        int argc, char** argv, const boost::program_options::options_description& visible,
        const boost::program_options::options_description& all,
        const boost::program_options::positional_options_description& positional,
        boost::program_options::variables_map& values) const;
};

enum class SecondSignal {
    waits_too,    ///< nothing must be left behind
    ends_at_once  ///< where the program stands
};

/// From now on SIGINT, SIGTERM and SIGHUP set what is returned.
const std::atomic<bool>& stop_on_signals(SecondSignal second);

/// From now on writing to a reader that has gone away, or beyond a limit on the size of files,
/// fails with an error instead of ending the program, so that what was begun is removed.
void let_writes_fail();

}  // namespace gloved::tools
