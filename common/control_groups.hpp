// The control groups of this process, which limit its memory and its processors.
#pragma once

#include <string>
#include <vector>

namespace gloved {

/// The directories of this process's control group (version 2) and of all groups above it. `root`
/// is put before all paths, for tests.
std::vector<std::string> control_groups(const std::string& root = "");

/// Processors whose time this process may use: the smallest quota of its control group and of all
/// above it (cpu.max; in version 1 cpu.cfs_quota_us). Infinite if none is set. `root` as above.
double processor_quota(const std::string& root = "");

/// Number of processors that this process may use, at least 1: those of its affinity mask, or as
/// many whole ones as its quota has. One thread more would be stopped in the middle of its work.
unsigned usable_processors();

}  // namespace gloved
