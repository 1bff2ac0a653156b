#include "common/process_memory.hpp"

#include <fstream>

namespace gloved {

Result<ProcessMemory> process_memory(const std::string& status_path) {
    std::ifstream status(status_path);
    ProcessMemory memory;
    int found = 0;
    for (std::string key; status >> key;) {
        const bool resident = key == "VmRSS:";
        const bool own = key == "RssAnon:" || key == "RssShmem:";
        std::uint64_t kibibytes = 0;
        if ((resident || own) && status >> kibibytes) {
            (resident ? memory.resident_bytes : memory.own_bytes) += kibibytes * 1024;
            ++found;
        }
        std::string rest;
        std::getline(status, rest);
    }
    if (found != 3) {
        return Error{ErrorCode::unavailable,
                     status_path + ": VmRSS, RssAnon and RssShmem are not there"};
    }
    return memory;
}

}  // namespace gloved
