// What g++ and clang spell differently in loops for one instruction set.
//
// Keep everything but the loops outside GLOVED_TARGET_BEGIN and GLOVED_TARGET_END: an inline
// function of a header that is first used between them is compiled for that instruction set, and
// may be linked into code for processors without it.
#pragma once

#define GLOVED_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define GLOVED_TARGET_BEGIN(features) \
    GLOVED_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define GLOVED_TARGET_END GLOVED_PRAGMA(clang attribute pop)
#else
#define GLOVED_TARGET_BEGIN(features) \
    GLOVED_PRAGMA(GCC push_options)   \
    GLOVED_PRAGMA(GCC target(features))
#define GLOVED_TARGET_END GLOVED_PRAGMA(GCC pop_options)
#endif
