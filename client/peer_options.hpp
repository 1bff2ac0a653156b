// The options by which the programs of this folder say which daemon they ask.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "client/patient_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

class PeerOptions {
  public:
    /// Adds --socket, --timeout and --retry, which are stored here: this outlives `options`.
    void add_to(boost::program_options::options_description& options);

    /// What they say; `timeout` where --timeout is not given. Error: bad_request, with what the
    /// user is to mend.
    Result<PeerSettings> settings(bool json, const std::string& timeout = "10") const;

    bool retry_given() const { return retry_.has_value(); }

  private:
    std::optional<std::string> socket_;
    std::optional<std::string> timeout_;
    std::optional<std::string> retry_;
};

}  // namespace gloved::client
