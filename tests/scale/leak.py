#!/usr/bin/env python3
"""Checks that a GPU has no more memory in use after many queries than before them.

    leak.py BIN_DIR MODEL [--engine NAME] [--seconds S]

gloved-bench asks a daemon one query at a time for S (60) seconds, then 64 at a time for a tenth of
that. A second of each goes before, since buffers that are kept for reuse fill then. GPU memory is
gpu_memory_bytes of STATS, and what nvidia-smi reports of all GPUs; neither may grow. The table also
shows the daemon's own memory, which allocators keep: tests/faults/growth judges it, with requests
of all kinds. A small model leaves more time for queries: 10,000 words of 100 numbers.

Exit status: 0 all held, 1 something did not, 2 wrong usage.
"""
import csv
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402

WARM_UP_S = 1


def ask(arguments, path, depth, seconds):
    """Asks for so long, `depth` requests ahead; returns the number of answers."""
    bench = os.path.join(arguments.bin, "gloved-bench")
    command = [bench, "load", path, "--connections", "1", "--depth", str(depth)]
    command += ["--seconds", str(seconds), "--check", "0", "--format", "csv"]
    done = harness.run(command, timeout=seconds + harness.PATIENCE_S)
    if done.returncode != 0:
        raise harness.Broken(f"gloved-bench load: {done.stderr}")
    return next(int(row[1]) for row in csv.reader(done.stdout.splitlines()) if row[:1] == ["near"])


def memory(service):
    """Bytes on GPUs by STATS, MiB on GPUs by nvidia-smi, own bytes; None where there is none."""
    told = service.statistics()
    gpu = told.get("gpu_memory_bytes")
    return gpu and int(gpu), gpu and harness.device_memory(), int(told["own_memory_bytes"])


@harness.program(
    harness.option("model", None, "directory made by gloved-convert", type=harness.existing),
    harness.option("--engine", "auto", "engine of the daemon"),
    harness.option("--seconds", 60.0, "how long to ask one query at a time"),
)
def main(arguments, verdicts):
    loads = ((1, arguments.seconds), (64, arguments.seconds / 10))
    with harness.Service(
        arguments.bin, arguments.work, arguments.model, engine=arguments.engine
    ) as service:
        for depth, _ in loads:
            ask(arguments, service.path, depth, WARM_UP_S)
        before = memory(service)
        answers = [ask(arguments, service.path, *load) for load in loads]
        after = memory(service)
        engine = service.statistics()["engine"]
    for name, old, new in zip(("STATS", "nvidia-smi"), before, after):
        if old is None:
            verdicts.leave_out(f"GPU memory by {name}", "the daemon uses no GPU, or it is not told")
        else:
            verdicts.judge(f"GPU memory by {name}", new <= old, f"{new} after {old}")
    verdicts.judge("queries", all(answers), f"{answers[0]:,} alone, {answers[1]:,} 64 at a time")
    return f"engine {engine}, own memory {after[2] - before[2]:+} bytes"
