// The version that every program tells.
#pragma once

namespace gloved {

/// The release, and in a build with GLOVED_COMMIT the commit, e.g.
/// «0.1.0+git719.20261127155041.g8b217d2». A «.changed» at the end tells of changes since then.
extern const char* const kProgramVersion;

}  // namespace gloved
