// Where a daemon listens, and where clients look for it.
#include "common/socket_places.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gloved {
namespace {

class SocketPlaces : public ::testing::Test {
  protected:
    void SetUp() override { forget(); }
    void TearDown() override { forget(); }

  private:
    static void forget() {
        for (const char* name : {"GLOVED_SOCKET", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"})
            ::unsetenv(name);
    }
};

TEST_F(SocketPlaces, AServiceOfSeveralDirectoriesListensInTheFirst) {
    ::setenv("RUNTIME_DIRECTORY", "/run/a:/run/b", 1);
    EXPECT_EQ(*socket_to_listen_at("", true), "/run/a/gloved.sock");
    ::setenv("RUNTIME_DIRECTORY", "/run/a", 1);
    EXPECT_EQ(*socket_to_listen_at("", false), "/run/a/gloved.sock");
}

// Only the service manager's variable is a list.
TEST_F(SocketPlaces, AUsersDirectoryMayHaveAColonInIt) {
    ::setenv("XDG_RUNTIME_DIR", "/run/user/a:b", 1);
    EXPECT_EQ(*socket_to_listen_at("", false), "/run/user/a:b/gloved.sock");
    EXPECT_EQ(sockets_to_ask("").front(), "/run/user/a:b/gloved.sock");
}

}  // namespace
}  // namespace gloved
