#include "common/socket_places.hpp"

#include <cstdlib>

namespace gloved {
namespace {

constexpr const char* kNamed = "GLOVED_SOCKET";
constexpr const char* kOfTheUser = "XDG_RUNTIME_DIR";
/// Several directories have colons between them (systemd.exec(5)): the first is taken.
constexpr const char* kOfTheService = "RUNTIME_DIRECTORY";

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// gloved.sock in the directory that a variable names; empty where it names none.
std::string socket_in(const char* name) {
    std::string directory = variable(name);
    if (name == kOfTheService) directory = directory.substr(0, directory.find(':'));
    return directory.empty() ? "" : directory + "/gloved.sock";
}

}  // namespace

std::vector<std::string> sockets_to_ask(const std::string& given) {
    if (!given.empty()) return {given};
    if (const std::string named = variable(kNamed); !named.empty()) return {named};
    if (const std::string own = socket_in(kOfTheUser); !own.empty()) return {own, kSystemSocket};
    return {kSystemSocket};
}

Result<std::string> socket_to_listen_at(const std::string& given, bool as_root) {
    if (!given.empty()) return given;
    if (const std::string named = variable(kNamed); !named.empty()) return named;
    if (const std::string of_service = socket_in(kOfTheService); !of_service.empty())
        return of_service;
    if (as_root) return std::string(kSystemSocket);
    if (const std::string own = socket_in(kOfTheUser); !own.empty()) return own;
    return Error{ErrorCode::io,
                 "no default socket path here; use --socket PATH or set GLOVED_SOCKET"};
}

}  // namespace gloved
