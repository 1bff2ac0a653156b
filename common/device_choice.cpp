#include "common/device_choice.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved {
namespace {

constexpr std::size_t kMaxDevices = 64;

}  // namespace

Result<DeviceChoice> parse_devices(std::string_view text) {
    DeviceChoice choice;
    choice.all = text == "all";
    if (choice.all) return choice;
    choice.numbers.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        int number = -1;
        const auto [stop, fault] = std::from_chars(text.data() + begin, text.data() + end, number);
        if (fault != std::errc() || stop != text.data() + end || number < 0) {
            return bad_request("must be 'all' or numbers separated by commas, not {}",
                               printable(text));
        }
        choice.numbers.push_back(number);
        begin = end + 1;
    }
    if (choice.numbers.size() > kMaxDevices)
        return bad_request("takes at most {} numbers", kMaxDevices);
    return choice;
}

}  // namespace gloved
