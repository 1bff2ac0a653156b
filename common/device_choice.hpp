// DeviceChoice: which GPUs a program uses.
#pragma once

#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved {

struct DeviceChoice {
    std::vector<int> numbers = {0};  ///< of the GPUs, counted from 0 as the driver does
    bool all = false;                ///< use every GPU, whatever `numbers` says
};

/// Parses «all», or up to 64 numbers with commas between them. Error: bad_request, whose message
/// can follow the option's name.
Result<DeviceChoice> parse_devices(std::string_view text);

}  // namespace gloved
