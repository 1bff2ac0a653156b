#include "common/program_version.hpp"

#include "common/version.hpp"

namespace gloved {

const char* const kProgramVersion = kBuiltVersion;

}  // namespace gloved
