// What the command lines of the measurements have in common.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

Error wrong_usage(std::string message);

/// The options of a command line, all of them text.
class CommandLine {
  public:
    /// Reads it; nothing but options may stand there. --help, which `options` has, and --version,
    /// if they have it, are answered on `out`, by `synopsis`, the options and `examples`; there is
    /// nothing else then. Error: bad_request.
    static Result<std::optional<CommandLine>> read(
        int argc, char** argv, const boost::program_options::options_description& options,
        std::string_view synopsis, std::string_view examples, std::ostream& out);

    /// Whether it stands on the command line.
    bool given(const char* name) const {
        return values_.count(name) != 0 && !values_[name].defaulted();
    }
    /// Its value, or its default, or nothing.
    std::string text(const char* name) const {
        return values_.count(name) != 0 ? values_[name].as<std::string>() : std::string();
    }
    /// parse_count of an option. At a fault it is kept, and `least` given.
    std::uint64_t count(const char* name, std::uint64_t least, std::uint64_t most) {
        return number(std::string("--") + name, text(name), least, most);
    }
    std::uint64_t number(const std::string& name, std::string_view digits, std::uint64_t least,
                         std::uint64_t most);
    /// --threads; 0 is one a processor that the process may use.
    unsigned threads();
    /// --device.
    int device();
    /// --format, text or csv.
    TableFormat format();
    /// The first fault of the above.
    const std::optional<Error>& fault() const { return fault_; }

  private:
    explicit CommandLine(boost::program_options::variables_map values)
        : values_(std::move(values)) {}

    boost::program_options::variables_map values_;
    std::optional<Error> fault_;
};

/// An option whose value is text, with or without one that it has otherwise.
inline auto value(const char* name) {
    return boost::program_options::value<std::string>()->value_name(name);
}
inline auto preset(const char* name, const char* preset_value) {
    return value(name)->default_value(preset_value);
}

/// CommandLine::read, and what `interpret` makes of it: a measurement's settings.
template <class Settings>
Result<std::optional<Settings>> read_settings_of(
    int argc, char** argv, const boost::program_options::options_description& options,
    std::string_view synopsis, std::string_view examples, std::ostream& out,
    Result<Settings> (*interpret)(CommandLine& line)) {
    auto line = CommandLine::read(argc, argv, options, synopsis, examples, out);
    if (!line) return line.error();
    if (!*line) return std::optional<Settings>();
    auto settings = interpret(**line);
    if (!settings) return settings.error();
    return std::optional(*std::move(settings));
}

}  // namespace gloved::bench
