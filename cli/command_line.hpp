// Reads a program's command line and configuration file: options, operands, --help, --version, and
// values with their limits.
#pragma once

#include <boost/program_options.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <ostream>
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

/// Minimum of a time option, in seconds, besides 0. A shorter time would be cut to 0.
inline constexpr double kMinSeconds = 0.001;
/// Maximum of a wait, in seconds: a day. A longer one is a mistake.
inline constexpr double kMaxSeconds = 86400;
/// Maximum of --threads.
inline constexpr std::size_t kMaxThreads = 256;
/// Threads by default of what reads a file or writes one: more would wait for memory, or for the
/// one thread that reads or writes.
inline constexpr std::size_t kFewThreads = 8;

/// A fault of the command line or the file. The message says what is wrong or what would be right.
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
    const char* more_operands = nullptr;  ///< name of all further ones, which each() lists
    /// What else an unknown option may be, for its message. `name` has its dashes.
    std::function<std::string(std::string_view name)> unknown_hint{};
};

/// An option that takes a value, without and with a default. `placeholder` stands for the value in
/// --help, e.g. «PATH».
using Value = boost::program_options::typed_value<std::string>;
Value* value(const char* placeholder);
Value* value(const char* placeholder, const std::string& default_value);

/// An option that may be given several times.
using Values = boost::program_options::typed_value<std::vector<std::string>>;
Values* values(const char* placeholder);

/// Adds options to a group, one by each call. A default stands at the end of its option's
/// description in --help.
class OptionAdder {
  public:
    explicit OptionAdder(boost::program_options::options_description& group) : group_(group) {}
    void operator()(const char* name, const char* description);
    void operator()(const char* name, Value* value, std::string description);
    void operator()(const char* name, Values* values, const char* description);

  private:
    boost::program_options::options_description& group_;
};

/// The options and operands of one command line. The constructor stores every value as text. The
/// other functions look up the option or operand `name` (without `--`) and convert its text. All
/// throw WrongUsage, which names the option, if the text does not fit. For a value from a file, the
/// message begins with its place, «PATH:LINE: ».
class CommandLine {
  public:
    CommandLine(const Options& options, const std::vector<std::string>& arguments);
    /// The options in the file that the option `name` of `line` gives. A line is «option = value»;
    /// # begins a comment. Options without values, and `name`, are for the command line alone.
    static CommandLine of_file(const Options& options, const CommandLine& line, const char* name);

    /// Adds what `file` gives and this does not.
    void add(const CommandLine& file);

    /// Whether the option is on the command line or in the file: a default does not count.
    bool given(const char* name) const;
    /// The value, else the default, else an empty text.
    std::string text(const char* name) const;
    /// Calls `take` with each value of an option or operand that may be given several times, in
    /// their order.
    /// `take` may throw WrongUsage.
    void each(const char* name, const std::function<void(const std::string& value)>& take) const;
    /// As text(), but throws if the value is given and empty. `what` is what the option takes, for
    /// the message, e.g. «a path».
    std::string nonempty(const char* name, const char* what) const;
    /// The value as a whole number from `min` to `max`.
    std::uint64_t count(const char* name, std::uint64_t min, std::uint64_t max) const;
    /// The same, or `otherwise` if not given.
    std::uint64_t count(const char* name, std::uint64_t min, std::uint64_t max,
                        std::uint64_t otherwise) const;
    /// A size such as 300000000, 512M or 4G, at least `min`.
    std::uint64_t bytes(const char* name, std::uint64_t min) const;
    /// The same, or `otherwise` if not given.
    std::uint64_t bytes(const char* name, std::uint64_t min, std::uint64_t otherwise) const;
    /// The GPUs that the value names (parse_devices), or GPU 0 without a value.
    DeviceChoice devices(const char* name) const;
    /// The value of --threads, from 1 to kMaxThreads. By default one per usable processor, at most
    /// `most`.
    std::size_t threads(std::size_t most = kMaxThreads) const;
    /// A decimal number from `min` to `max`.
    double number(const char* name, double min, double max) const;
    /// Seconds from `min` to `max`, as a decimal number. With `min` 0, it is 0 or from kMinSeconds.
    std::chrono::milliseconds seconds(const char* name, double min, double max = kMaxSeconds) const;
    /// The value, which must be one of the words of the option's placeholder, e.g. «min|max».
    std::string word(const char* name) const;
    /// The meaning of that word in `choices`, which has all words of the placeholder.
    template <class T>
    T choice(const char* name, std::initializer_list<std::pair<const char*, T>> choices) const {
        const std::string chosen = word(name);
        for (const auto& [choice, meaning] : choices) {
            if (chosen == choice) return meaning;
        }
        throw std::logic_error(std::string("nothing is known of ") + name + " " + chosen);
    }
    /// True for «on», false for «off».
    bool on_or_off(const char* name) const {
        return choice<bool>(name, {{"on", true}, {"off", false}});
    }

    /// Checks that none of `others` is given unless `name` is.
    void needs(const char* name, std::initializer_list<const char*> others) const;
    /// Checks that none of `others` is given together with `name`.
    void excludes(const char* name, std::initializer_list<const char*> others) const;

  private:
    CommandLine() = default;
    /// «PATH:LINE: » of the value number `index` of an option, or nothing if no file gives it.
    std::string place(const char* name, std::size_t index = 0) const;
    [[noreturn]] void refuse(const char* name, const std::string& what) const;

    boost::program_options::variables_map values_;
    std::map<std::string, std::string> placeholders_;
    std::string path_;                                                // of the file
    std::map<std::string, std::vector<std::uint64_t>> line_numbers_;  // of values from the file
};

/// Parses `text` as a whole number from `min` to `max`. Throws WrongUsage, which calls the number
/// `name`.
std::uint64_t parse_count(std::string_view name, std::string_view text, std::uint64_t min,
                          std::uint64_t max);

/// Refuses «-» as the value of an option that names a file of a daemon. Standard input can be read
/// once alone, and belongs to no daemon.
void check_is_file(const char* name, const std::string& path);

/// The arguments of main without the first, the program's path.
std::vector<std::string> arguments_of(int argc, char** argv);

/// Adds --help and --version to a group.
void add_help(boost::program_options::options_description& group);

/// Answers --help or --version on `out`. Returns false if neither is given.
bool answer_help(const Program& program, const Options& options, const CommandLine& line,
                 std::ostream& out);

/// The body of main: parses the arguments and calls `run`, or answers --help or --version. Returns
/// the exit status: that of `run`, or kUsage after WrongUsage, whose message is printed.
int run(const Program& program, Options options, const std::vector<std::string>& arguments,
        const std::function<int(const CommandLine& line)>& run);

}  // namespace gloved::cli
