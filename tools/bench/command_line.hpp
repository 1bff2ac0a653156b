// What the command lines of the measurements have in common.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

Error wrong_usage(std::string message);

/// The options of a command line, all of them text.
class CommandLine {
  public:
    /// Reads it; nothing but options may stand there. --help, which `options` has, and --version, if they have it, are answered on `out`,
    /// by `synopsis`, the options and `examples`; there is nothing else then. Error: bad_request.
    static Result<std::optional<CommandLine>> read(int argc, char** argv,
                                                   const boost::program_options::options_description& options,
                                                   std::string_view synopsis, std::string_view examples,
                                                   std::ostream& out);

    /// Whether it stands on the command line.
    bool given(const char* name) const { return values_.count(name) != 0 && !values_[name].defaulted(); }
    /// Its value, or its default, or nothing.
    std::string text(const char* name) const {
        return values_.count(name) != 0 ? values_[name].as<std::string>() : std::string();
    }
    /// parse_count of an option. At a fault it is kept, and `least` given.
    std::uint64_t count(const char* name, std::uint64_t least, std::uint64_t most) {
        return number(std::string("--") + name, text(name), least, most);
    }
    std::uint64_t number(const std::string& name, std::string_view digits, std::uint64_t least, std::uint64_t most);
    /// --format, text or csv.
    TableFormat format();
    /// The first fault of the above.
    const std::optional<Error>& fault() const { return fault_; }

  private:
    explicit CommandLine(boost::program_options::variables_map values) : values_(std::move(values)) {}

    boost::program_options::variables_map values_;
    std::optional<Error> fault_;
};

}  // namespace gloved::bench
