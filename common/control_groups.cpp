#include "common/control_groups.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>

namespace gloved {
namespace {

constexpr std::string_view kMount = "/sys/fs/cgroup";

/// Adds `path` below `mount`, and all directories above it, to `directories`.
void add_with_parents(const std::string& mount, std::string path,
                      std::vector<std::string>& directories) {
    while (true) {
        directories.push_back(mount + path);
        const std::size_t slash = path.rfind('/');
        if (slash == std::string::npos) return;
        path.resize(slash);
    }
}

/// The same of version 1, for processor time: those of the line «N:cpu,cpuacct:/PATH».
std::vector<std::string> processor_groups_v1(const std::string& root) {
    std::vector<std::string> directories;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t names = line.find(':') + 1;
        const std::size_t path = line.find(':', names);
        if (names == 0 || path == std::string::npos) continue;
        const std::string controllers = "," + line.substr(names, path - names) + ",";
        if (controllers.find(",cpu,") == std::string::npos) continue;
        add_with_parents(root + std::string(kMount) + "/cpu", line.substr(path + 1), directories);
    }
    return directories;
}

/// The number at the beginning of a file; nullopt if there is none, as in «max 100000».
std::optional<double> read_number(std::ifstream& file) {
    double number = 0;
    return file >> number ? std::optional(number) : std::nullopt;
}

/// Number of processors in the affinity mask.
unsigned allowed_processors() {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0)
        return std::max(1U, std::thread::hardware_concurrency());
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

std::vector<std::string> control_groups(const std::string& root) {
    std::vector<std::string> directories;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        if (line.starts_with("0::/"))
            add_with_parents(root + std::string(kMount), line.substr(3), directories);
    }
    return directories;
}

double processor_quota(const std::string& root) {
    double least = std::numeric_limits<double>::infinity();
    const auto apply = [&least](std::optional<double> quota, std::optional<double> period) {
        // In version 1, −1 is no quota.
        if (quota && period && *quota > 0 && *period > 0) least = std::min(least, *quota / *period);
    };
    for (const std::string& group : control_groups(root)) {
        std::ifstream max(group + "/cpu.max");
        const auto quota = read_number(max);
        apply(quota, read_number(max));
    }
    for (const std::string& group : processor_groups_v1(root)) {
        std::ifstream quota(group + "/cpu.cfs_quota_us");
        std::ifstream period(group + "/cpu.cfs_period_us");
        apply(read_number(quota), read_number(period));
    }
    return least;
}

unsigned usable_processors() {
    const unsigned allowed = allowed_processors();
    const double quota = std::floor(processor_quota());
    return quota < allowed ? std::max(1U, static_cast<unsigned>(quota)) : allowed;
}

}  // namespace gloved
