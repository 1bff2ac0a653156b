// The descriptors of this process: how many connections they allow, and one in reserve, with which
// a connection is refused when there is no other.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "common/files.hpp"

namespace gloved::daemon {

/// This process's limit on descriptors, and how many of them are free.
struct Descriptors {
    std::size_t limit;
    std::size_t free;
};
/// nullopt where the system does not tell.
std::optional<Descriptors> count_descriptors();

/// Numbers of connections that may be open: served ones, and refused ones that read why.
struct ConnectionRoom {
    std::size_t served;
    std::size_t refused;
};

/// Divides `free` descriptors, of which some stay for a reload of each of `models` models. `wanted`
/// is what there should be. At least one connection of each kind.
ConnectionRoom room_for_connections(ConnectionRoom wanted, std::size_t free, std::size_t models);

/// A descriptor that is open for nothing until all others are taken.
class ReserveDescriptor {
  public:
    ReserveDescriptor() { refill(); }
    /// Accepts a connection at the socket `listening` with the reserve, sends it `line` and closes
    /// it. Returns false if that was not possible, and no connection was taken.
    bool refuse_connection(int listening, std::string_view line);

  private:
    void refill();

    UniqueFd reserve_;
};

}  // namespace gloved::daemon
