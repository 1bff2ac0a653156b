// Two cases that end as the environment says, with the words that skipped tests print.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace gloved::tests {
namespace {

void end_as(const char* variable) {
    const char* const given = std::getenv(variable);
    if (given == nullptr) return;
    const std::string end = given;
    std::puts("skipped: no device\n[  SKIPPED ] and more words");
    // As a sanitizer's runtime does that finds a fault after all cases.
    if (end == "skip badly") (void)std::atexit([] { std::_Exit(23); });
    if (end.starts_with("skip")) GTEST_SKIP() << "skipped: no device";
    if (end == "fail") ADD_FAILURE() << "as the environment says";
}

TEST(SkipProbe, First) { end_as("GLOVED_SKIP_PROBE_FIRST"); }
TEST(SkipProbe, Second) { end_as("GLOVED_SKIP_PROBE_SECOND"); }

}  // namespace
}  // namespace gloved::tests
