// What a fuzz target holds true.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the process, which libFuzzer reports as a finding, unless `condition` holds. In every
/// build, unlike assert.
#define GLOVED_CHECK(condition)                                                          \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                \
        }                                                                                \
    } while (false)
