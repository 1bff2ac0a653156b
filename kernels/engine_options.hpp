// Options with which an engine is made: threads, devices, planes, memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "common/device_choice.hpp"

namespace gloved::kernels {

/// How several devices share the work.
enum class Spread {
    automatic,  ///< by queries if each device has room for the whole model, otherwise by rows
    rows,       ///< each holds a part of the rows, in which it answers every query
    /// Each holds all rows, and answers a part of a batch's queries. A query that is alone, and one
    /// that scores every row, is answered by all of them, each in a part of the rows.
    queries,
};

/// Whether and when the cpu engine makes a 7-bit plane besides the 4-bit one, for batches of many
/// queries, where the processor has fast products of bytes. It takes a quarter of the vectors'
/// memory.
enum class FinePlane {
    never,
    at_start,
    when_needed,  ///< at the first such batch, by a thread of its own; batches do not wait for it
};

/// Options for make_engine. «cuda:» and «cpu:» mark those that only one engine reads.
struct EngineOptions {
    unsigned threads = 0;  ///< 0: one per processor that the process may use
    /// Whether to read a 4-bit plane of the model first, and only the vectors that it does not rule
    /// out. Faster; takes 13 % more memory for dim 300. Answers are the same.
    bool planes = true;
    /// cuda: answer batches by int8 codes where the device has room for them. For tests.
    bool int8_pass = true;
    /// cuda: leave the vectors in host memory, even where the device has room for them. For tests.
    bool host_vectors = false;
    /// cuda: multiply int8 codes by the products of whole warpgroups (wgmma), where the device has
    /// them; otherwise by those of a warp, as on every other device. For tests and for measuring.
    bool wgmma = true;
    FinePlane fine_plane = FinePlane::never;  ///< cpu
    /// cpu: whether memory has room for a fine plane of so many bytes, asked before it is made, on
    /// the thread that makes it; empty: yes.
    std::function<bool(std::size_t bytes)> has_room = {};
    /// cuda: have room for lists that queries name (Filter::lists): 8 bytes a row, and 1 MiB.
    bool lists = false;
    /// cpu: name of the instruction set (see simd_names); empty: the processor's best.
    std::string simd = {};
    /// cuda: the devices. One that is named twice holds two shards.
    DeviceChoice devices = {};
    Spread spread = Spread::automatic;  ///< cuda: how several devices share the work
    /// cuda: limit on the memory used on each device; 0: what is free. If the model does not fit
    /// and `planes` is true, devices hold only its codes, and read the few vectors that they need
    /// from page-locked host memory.
    std::size_t gpu_memory_bytes = 0;
    /// cuda: whether to page-lock vectors and plane while they are copied. If the driver refuses,
    /// they are copied all the same, more slowly.
    bool pin = true;
    /// cuda: measure Certificate::device_ms, which costs some microseconds per pass.
    bool time_device = false;
    /// Called with a line for the log about each long step of making the engine and its planes, on
    /// the thread that makes them; may be empty.
    std::function<void(const std::string&)> log = {};
};

}  // namespace gloved::kernels
