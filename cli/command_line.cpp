#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <system_error>

#include "common/byte_count.hpp"
#include "common/expr/expression.hpp"
#include "common/nearest_name.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "common/version.hpp"

namespace gloved::cli {
namespace {

namespace po = boost::program_options;

/// «; did you mean --NAME?», or nothing.
std::string near_option(std::string_view typed, const po::options_description& all) {
    typed.remove_prefix(std::min(typed.find_first_not_of('-'), typed.size()));
    std::vector<std::string> names;
    for (const auto& option : all.options()) names.push_back(option->long_name());
    const std::string name = nearest_name(typed, names);
    return name.empty() ? "" : fmt::format("; did you mean --{}?", name);
}

}  // namespace

void Program::say(const std::string& message) const { say_on_stderr(name, message); }

Value* value(const char* placeholder) { return po::value<std::string>()->value_name(placeholder); }

Value* value(const char* placeholder, const char* default_value) {
    // The empty text keeps Boost from showing the default beside the option's name.
    return value(placeholder)->default_value(default_value, "");
}

Values* values(const char* placeholder) {
    return po::value<std::vector<std::string>>()->value_name(placeholder);
}

OptionAdder& OptionAdder::operator()(const char* name, Values* values, const char* description) {
    group_.add_options()(name, values, description);
    return *this;
}

OptionAdder& OptionAdder::operator()(const char* name, const char* description) {
    group_.add_options()(name, description);
    return *this;
}

OptionAdder& OptionAdder::operator()(const char* name, Value* value, std::string description) {
    boost::any default_value;
    if (value->apply_default(default_value))
        description += fmt::format(" (default: {})", boost::any_cast<std::string>(default_value));
    group_.add_options()(name, value, description.c_str());
    return *this;
}

CommandLine::CommandLine(const Options& options, const std::vector<std::string>& arguments) {
    po::options_description all;
    all.add(options.shown).add(options.hidden);
    po::positional_options_description positional;
    for (const char* operand : options.operands) {
        all.add_options()(operand, po::value<std::string>());
        positional.add(operand, 1);
    }
    constexpr int kStyle =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    try {
        po::store(po::command_line_parser(arguments)
                      .options(all)
                      .positional(positional)
                      .style(kStyle)
                      .run(),
                  values_);
    } catch (const po::too_many_positional_options_error&) {
        throw WrongUsage("too many arguments");
    } catch (const po::unknown_option& error) {
        throw WrongUsage(error.what() + near_option(error.get_option_name(), all) +
                         options.unknown_hint);
    } catch (const po::error& error) {
        throw WrongUsage(error.what());
    }
}

bool CommandLine::given(const char* name) const {
    return values_.count(name) != 0 && !values_[name].defaulted();
}

std::string CommandLine::text(const char* name) const {
    return values_.count(name) != 0 ? values_[name].as<std::string>() : std::string();
}

std::vector<std::string> CommandLine::texts(const char* name) const {
    return given(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>();
}

std::string CommandLine::nonempty(const char* name, const char* what) const {
    std::string value = text(name);
    if (given(name) && value.empty()) throw WrongUsage(fmt::format("--{} takes {}", name, what));
    return value;
}

std::uint64_t CommandLine::count(const char* name, std::uint64_t min, std::uint64_t max) const {
    if (values_.count(name) == 0) throw WrongUsage(fmt::format("--{} is needed", name));
    return parse_count(fmt::format("--{}", name), text(name), min, max);
}

std::uint64_t CommandLine::count(const char* name, std::uint64_t min, std::uint64_t max,
                                 std::uint64_t otherwise) const {
    return given(name) ? count(name, min, max) : otherwise;
}

DeviceChoice CommandLine::devices(const char* name) const {
    const std::string value = text(name);
    if (value.empty() && !given(name)) return {};
    auto devices = parse_devices(value);
    if (!devices) throw WrongUsage(fmt::format("--{} {}", name, devices.error().message));
    return *std::move(devices);
}

std::uint64_t CommandLine::bytes(const char* name, std::uint64_t min,
                                 std::uint64_t otherwise) const {
    if (!given(name)) return otherwise;
    const auto bytes = byte_count_from(text(name));
    if (!bytes || *bytes < min) {
        const std::string least =
            min % (1 << 20) == 0 ? fmt::format("{}M", min >> 20) : fmt::to_string(min);
        throw WrongUsage(
            fmt::format("--{} takes bytes, {} or more (as 300000000, 512M or 4G), not {}", name,
                        least, printable(text(name))));
    }
    return *bytes;
}

std::chrono::milliseconds CommandLine::seconds(const char* name, double min) const {
    const auto seconds = expr::parse_number(text(name));
    if (!seconds || !(*seconds >= min && *seconds <= kMaxSeconds)) {
        throw WrongUsage(fmt::format("--{} takes seconds from {:g} to {:.0f}, not {}", name, min,
                                     kMaxSeconds, printable(text(name))));
    }
    return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(*seconds * 1000));
}

void CommandLine::needs(const char* name, std::initializer_list<const char*> others) const {
    if (given(name)) return;
    for (const char* other : others) {
        if (given(other)) throw WrongUsage(fmt::format("--{} needs --{}", other, name));
    }
}

void CommandLine::excludes(const char* name, std::initializer_list<const char*> others) const {
    if (!given(name)) return;
    for (const char* other : others) {
        if (given(other))
            throw WrongUsage(fmt::format("--{} cannot be used with --{}", other, name));
    }
}

void CommandLine::no_such_choice(const char* name, const std::vector<std::string>& names) const {
    throw WrongUsage(fmt::format("--{} takes {} or {}, not {}", name,
                                 fmt::join(names.begin(), std::prev(names.end()), ", "),
                                 names.back(), printable(text(name))));
}

std::uint64_t parse_count(std::string_view name, std::string_view text, std::uint64_t min,
                          std::uint64_t max) {
    std::uint64_t count = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (fault != std::errc() || end != text.data() + text.size() || count < min || count > max) {
        throw WrongUsage(fmt::format("{} takes a whole number from {} to {}, not {}", name, min,
                                     max, printable(text)));
    }
    return count;
}

std::vector<std::string> arguments_of(int argc, char** argv) {
    return {argv + std::min(argc, 1), argv + argc};
}

int run(const Program& program, Options options, const std::vector<std::string>& arguments,
        const std::function<int(const CommandLine& line)>& run) {
    options.shown.add_options()("help", "print this help and exit")("version",
                                                                    "print the version and exit");
    try {
        const CommandLine line(options, arguments);
        if (line.given("help")) {
            std::cout << program.help_head << options.shown << program.help_tail;
            return kDone;
        }
        if (line.given("version")) {
            const std::string_view name = program.name;
            std::cout << name.substr(0, name.find(' ')) << ' ' << kProgramVersion << '\n';
            return kDone;
        }
        return run(line);
    } catch (const WrongUsage& wrong) {
        program.say(fmt::format("{}; see {} --help", wrong.what(), program.name));
        return kUsage;
    }
}

}  // namespace gloved::cli
