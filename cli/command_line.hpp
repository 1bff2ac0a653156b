// Reads a program's command line: options, operands, --help, --version, and values with their
// limits.
#pragma once

#include <boost/program_options.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/device_choice.hpp"

namespace gloved::cli {

/// Exit statuses of all programs: success, a fault of data or system, wrong usage.
inline constexpr int kDone = 0;
inline constexpr int kFault = 1;
inline constexpr int kUsage = 2;

/// Maximum of a time option, in seconds: a day. A longer wait is a mistake.
inline constexpr double kMaxSeconds = 86400;

/// A fault of the command line. The message says what is wrong or what would be right.
struct WrongUsage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A program's name and the two parts of its --help. The texts live for ever.
struct Program {
    const char* name;       ///< as users type it, e.g. «gloved-bench matmin»
    const char* help_head;  ///< before the list of options
    const char* help_tail;  ///< after it

    /// Prints «NAME: message» on stderr, as one line whatever is in the message.
    void say(const std::string& message) const;
};

/// What a program accepts besides --help and --version.
struct Options {
    boost::program_options::options_description shown{"Options"};
    boost::program_options::options_description hidden{};  ///< options for tests
    std::vector<const char*> operands{};  ///< names of the arguments without `--`, by position
    std::string unknown_hint{};           ///< what else an unknown option may be, for its message
};

/// An option that takes a value, without and with a default. `placeholder` stands for the value in
/// --help, e.g. «PATH».
using Value = boost::program_options::typed_value<std::string>;
Value* value(const char* placeholder);
Value* value(const char* placeholder, const char* default_value);

/// An option that may be given several times.
using Values = boost::program_options::typed_value<std::vector<std::string>>;
Values* values(const char* placeholder);

/// Adds options to a group. A default stands at the end of its option's description in --help.
class OptionAdder {
  public:
    explicit OptionAdder(boost::program_options::options_description& group) : group_(group) {}
    OptionAdder& operator()(const char* name, const char* description);
    OptionAdder& operator()(const char* name, Value* value, std::string description);
    OptionAdder& operator()(const char* name, Values* values, const char* description);

  private:
    boost::program_options::options_description& group_;
};

/// The options and operands of one command line. The constructor stores every value as text. The
/// other functions look up the option or operand `name` (without `--`) and convert its text. All
/// throw WrongUsage, which names the option, if the text does not fit.
class CommandLine {
  public:
    CommandLine(const Options& options, const std::vector<std::string>& arguments);

    /// Whether the option is on the command line: a default does not count.
    bool given(const char* name) const;
    /// The value, else the default, else an empty text.
    std::string text(const char* name) const;
    /// All values of an option that may be given several times, in their order.
    std::vector<std::string> texts(const char* name) const;
    /// As text(), but throws if the value is given and empty. `what` is what the option takes, for
    /// the message, e.g. «a path».
    std::string nonempty(const char* name, const char* what) const;
    /// The value as a whole number from `min` to `max`.
    std::uint64_t count(const char* name, std::uint64_t min, std::uint64_t max) const;
    /// The same, or `otherwise` if not given.
    std::uint64_t count(const char* name, std::uint64_t min, std::uint64_t max,
                        std::uint64_t otherwise) const;
    /// A size such as 300000000, 512M or 4G, or `otherwise` if not given.
    std::uint64_t bytes(const char* name, std::uint64_t min, std::uint64_t otherwise) const;
    /// The GPUs that the value names (parse_devices), or GPU 0 without a value.
    DeviceChoice devices(const char* name) const;
    /// Seconds from `min` to kMaxSeconds, as a decimal number.
    std::chrono::milliseconds seconds(const char* name, double min) const;
    /// The meaning of the value, which must be the text of one of `choices`: (text, meaning).
    template <class T>
    T choice(const char* name, std::initializer_list<std::pair<const char*, T>> choices) const {
        std::vector<std::string> names;
        for (const auto& [choice, meaning] : choices) {
            if (text(name) == choice) return meaning;
            names.emplace_back(choice);
        }
        no_such_choice(name, names);
    }
    /// True for «on», false for «off».
    bool on_or_off(const char* name) const {
        return choice<bool>(name, {{"on", true}, {"off", false}});
    }

    /// Checks that none of `others` is given unless `name` is.
    void needs(const char* name, std::initializer_list<const char*> others) const;
    /// Checks that none of `others` is given together with `name`.
    void excludes(const char* name, std::initializer_list<const char*> others) const;

    /// Throws WrongUsage: «--name takes a, b or c, not "x"».
    [[noreturn]] void no_such_choice(const char* name, const std::vector<std::string>& names) const;

  private:
    boost::program_options::variables_map values_;
};

/// Parses `text` as a whole number from `min` to `max`. Throws WrongUsage, which calls the number
/// `name`.
std::uint64_t parse_count(std::string_view name, std::string_view text, std::uint64_t min,
                          std::uint64_t max);

/// The arguments of main without the first, the program's path.
std::vector<std::string> arguments_of(int argc, char** argv);

/// The body of main: parses the arguments and calls `run`, or answers --help or --version. Returns
/// the exit status: that of `run`, or kUsage after WrongUsage, whose message is printed.
int run(const Program& program, Options options, const std::vector<std::string>& arguments,
        const std::function<int(const CommandLine& line)>& run);

}  // namespace gloved::cli
