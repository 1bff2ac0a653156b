#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>

#include "common/byte_count.hpp"
#include "common/control_groups.hpp"
#include "common/expr/expression.hpp"
#include "common/nearest_name.hpp"
#include "common/program_main.hpp"
#include "common/program_version.hpp"
#include "common/quoting.hpp"
#include "common/text_lines.hpp"

namespace gloved::cli {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

/// «; did you mean NAME?», with these dashes before the name, or nothing.
std::string near_option(std::string_view typed, const po::options_description& all,
                        const char* dashes) {
    typed.remove_prefix(std::min(typed.find_first_not_of('-'), typed.size()));
    std::vector<std::string> names;
    for (const auto& option : all.options()) names.push_back(option->long_name());
    const std::string name = nearest_name(typed, names);
    return name.empty() ? "" : fmt::format("; did you mean {}{}?", dashes, name);
}

std::string_view without_blanks(std::string_view text) {
    constexpr const char* kBlanks = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// The option in a line of a file; nullopt if there is none. Throws WrongUsage.
std::optional<po::option> option_of(std::string_view line, const po::options_description& all,
                                    std::string_view file_option) {
    line = without_blanks(line.substr(0, line.find('#')));
    if (line.empty()) return std::nullopt;
    if (line.front() == '[') throw WrongUsage("there are no sections here; remove the line");
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string_view::npos)
        throw WrongUsage(fmt::format("{} is not 'name = value'", printable(line)));
    po::option option(std::string(without_blanks(line.substr(0, equals))),
                      {std::string(without_blanks(line.substr(equals + 1)))});
    const std::string& name = option.string_key;
    const auto* known = all.find_nothrow(name, false);
    if (known == nullptr) {
        throw WrongUsage(
            fmt::format("unrecognised option '{}'{}", name, near_option(name, all, "")));
    }
    if (known->semantic()->max_tokens() == 0 || name == file_option)
        throw WrongUsage(fmt::format("'{}' is allowed on the command line only", name));
    return option;
}

}  // namespace

void Program::say(const std::string& message) const { say_on_stderr(name, message); }

Value* value(const char* placeholder) { return po::value<std::string>()->value_name(placeholder); }

Value* value(const char* placeholder, const std::string& default_value) {
    // The empty text keeps Boost from showing the default beside the option's name.
    return value(placeholder)->default_value(default_value, "");
}

Values* values(const char* placeholder) {
    return po::value<std::vector<std::string>>()->composing()->value_name(placeholder);
}

void OptionAdder::operator()(const char* name, Values* values, const char* description) {
    group_.add_options()(name, values, description);
}

void OptionAdder::operator()(const char* name, const char* description) {
    group_.add_options()(name, description);
}

void OptionAdder::operator()(const char* name, Value* value, std::string description) {
    boost::any default_value;
    if (value->apply_default(default_value))
        description += fmt::format(" (default: {})", boost::any_cast<std::string>(default_value));
    group_.add_options()(name, value, description.c_str());
}

CommandLine::CommandLine(const Options& options, const std::vector<std::string>& arguments) {
    po::options_description all;
    all.add(options.shown).add(options.hidden);
    po::positional_options_description positional;
    for (const char* operand : options.operands) {
        all.add_options()(operand, po::value<std::string>());
        positional.add(operand, 1);
    }
    if (options.more_operands != nullptr) {
        all.add_options()(options.more_operands, values(""));
        positional.add(options.more_operands, -1);
    }
    for (const auto& option : all.options())
        placeholders_[option->long_name()] = option->format_parameter();
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
        std::string name = error.get_option_name();
        name.resize(std::min(name.find('='), name.size()));
        throw WrongUsage(error.what() + near_option(name, all, "--") +
                         (options.unknown_hint ? options.unknown_hint(name) : ""));
    } catch (const po::error& error) {
        throw WrongUsage(error.what());
    }
}

CommandLine CommandLine::of_file(const Options& options, const CommandLine& line,
                                 const char* name) {
    CommandLine file;
    file.placeholders_ = line.placeholders_;
    file.path_ = line.text(name);
    check_is_file(name, file.path_);
    const auto text = read_text(file.path_, kMaxFileBytes);
    if (!text) throw WrongUsage(fmt::format("--{}: {}", name, text.error().message));
    po::options_description all;
    all.add(options.shown).add(options.hidden);
    po::parsed_options parsed(&all);
    TextLines lines(file.path_, *text);
    for (auto next = lines.next(); !next || *next; next = lines.next()) {
        if (!next) throw WrongUsage(fmt::format("--{}: {}", name, next.error().message));
        try {
            const auto option = option_of(**next, all, name);
            if (!option) continue;
            auto& numbers = file.line_numbers_[option->string_key];
            numbers.push_back(lines.number());
            const bool repeats = all.find(option->string_key, false).semantic()->is_composing();
            if (numbers.size() > 1 && !repeats) {
                throw WrongUsage(fmt::format("'{}' stands in line {} already; remove one",
                                             option->string_key, numbers.front()));
            }
            parsed.options.push_back(*option);
        } catch (const WrongUsage& wrong) {
            throw WrongUsage(fmt::format("{}:{}: {}", file.path_, lines.number(), wrong.what()));
        }
    }
    po::store(parsed, file.values_);
    return file;
}

void CommandLine::add(const CommandLine& file) {
    path_ = file.path_;
    for (const auto& [name, numbers] : file.line_numbers_) {
        if (given(name.c_str())) continue;
        values_.insert_or_assign(name, file.values_[name]);
        line_numbers_[name] = numbers;
    }
}

bool CommandLine::given(const char* name) const {
    return values_.count(name) != 0 && !values_[name].defaulted();
}

std::string CommandLine::text(const char* name) const {
    assert(placeholders_.count(name) != 0);
    return values_.count(name) != 0 ? values_[name].as<std::string>() : std::string();
}

void CommandLine::each(const char* name,
                       const std::function<void(const std::string& value)>& take) const {
    if (!given(name)) return;
    const auto& values = values_[name].as<std::vector<std::string>>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        try {
            take(values[i]);
        } catch (const WrongUsage& wrong) {
            throw WrongUsage(place(name, i) + wrong.what());
        }
    }
}

std::string CommandLine::nonempty(const char* name, const char* what) const {
    std::string value = text(name);
    if (given(name) && value.empty()) refuse(name, fmt::format("takes {}", what));
    return value;
}

std::uint64_t CommandLine::count(const char* name, std::uint64_t min, std::uint64_t max) const {
    if (values_.count(name) == 0) throw WrongUsage(fmt::format("--{} is needed", name));
    return parse_count(fmt::format("{}--{}", place(name), name), text(name), min, max);
}

std::uint64_t CommandLine::count(const char* name, std::uint64_t min, std::uint64_t max,
                                 std::uint64_t otherwise) const {
    return given(name) ? count(name, min, max) : otherwise;
}

std::size_t CommandLine::threads(std::size_t most) const {
    return count("threads", 1, kMaxThreads, std::min<std::size_t>(usable_processors(), most));
}

DeviceChoice CommandLine::devices(const char* name) const {
    const std::string value = text(name);
    if (value.empty() && !given(name)) return {};
    auto devices = parse_devices(value);
    if (!devices) refuse(name, devices.error().message);
    return *std::move(devices);
}

std::uint64_t CommandLine::bytes(const char* name, std::uint64_t min) const {
    const auto bytes = byte_count_from(text(name));
    if (!bytes || *bytes < min) {
        const std::string least =
            min > 0 && min % (1 << 20) == 0 ? fmt::format("{}M", min >> 20) : fmt::to_string(min);
        refuse(name, fmt::format("takes bytes, {} or more (as 300000000, 512M or 4G), not {}",
                                 least, printable(text(name))));
    }
    return *bytes;
}

std::uint64_t CommandLine::bytes(const char* name, std::uint64_t min,
                                 std::uint64_t otherwise) const {
    return given(name) ? bytes(name, min) : otherwise;
}

double CommandLine::number(const char* name, double min, double max) const {
    const auto number = expr::parse_number(text(name));
    if (!number || !(*number >= min && *number <= max)) {
        refuse(name, fmt::format("takes a number from {:g} to {:.0f}, not {}", min, max,
                                 printable(text(name))));
    }
    return *number;
}

std::chrono::milliseconds CommandLine::seconds(const char* name, double min, double max) const {
    const auto seconds = expr::parse_number(text(name));
    const bool is_zero = min == 0 && seconds && *seconds == 0;
    const double least = std::max(min, kMinSeconds);
    if (!is_zero && !(seconds && *seconds >= least && *seconds <= max)) {
        refuse(name, fmt::format("takes seconds{} from {:g} to {:.0f}, not {}",
                                 min == 0 ? ", 0 or" : "", least, max, printable(text(name))));
    }
    return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(*seconds * 1000));
}

std::string CommandLine::word(const char* name) const {
    std::vector<std::string> words;
    std::istringstream placeholder(placeholders_.at(name));
    for (std::string word; std::getline(placeholder, word, '|');) words.push_back(word);
    std::string value = text(name);
    if (std::ranges::find(words, value) == words.end()) {
        refuse(name, fmt::format("takes {} or {}, not {}",
                                 fmt::join(words.begin(), std::prev(words.end()), ", "),
                                 words.back(), printable(value)));
    }
    return value;
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

std::string CommandLine::place(const char* name, std::size_t index) const {
    const auto numbers = line_numbers_.find(name);
    return numbers == line_numbers_.end()
               ? ""
               : fmt::format("{}:{}: ", path_, numbers->second.at(index));
}

void CommandLine::refuse(const char* name, const std::string& what) const {
    throw WrongUsage(fmt::format("{}--{} {}", place(name), name, what));
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

void check_is_file(const char* name, const std::string& path) {
    if (path != "-") return;
    throw WrongUsage(
        fmt::format("--{} takes the name of a file, not -; /dev/stdin is standard input", name));
}

std::vector<std::string> arguments_of(int argc, char** argv) {
    return {argv + std::min(argc, 1), argv + argc};
}

void add_help(po::options_description& group) {
    OptionAdder add(group);
    add("help", "print this help and exit");
    add("version", "print the version and exit");
}

bool answer_help(const Program& program, const Options& options, const CommandLine& line,
                 std::ostream& out) {
    const std::string_view name = program.name;
    if (line.given("help")) {
        out << program.help_head << options.shown << program.help_tail;
    } else if (line.given("version")) {
        out << name.substr(0, name.find(' ')) << ' ' << kProgramVersion << '\n';
    } else {
        return false;
    }
    return true;
}

int run(const Program& program, Options options, const std::vector<std::string>& arguments,
        const std::function<int(const CommandLine& line)>& run) {
    add_help(options.shown);
    try {
        const CommandLine line(options, arguments);
        return answer_help(program, options, line, std::cout) ? kDone : run(line);
    } catch (const WrongUsage& wrong) {
        program.say(fmt::format("{}; see {} --help", wrong.what(), program.name));
        return kUsage;
    }
}

}  // namespace gloved::cli
