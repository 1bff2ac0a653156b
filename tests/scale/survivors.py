#!/usr/bin/env python3
"""Measures how many rows a plane leaves to be read, for queries of real words.

    survivors.py BIN_DIR MODEL [--count N] [--engine NAME] [--k K] [--beside BIN_DIR]

Asks a daemon for the neighbours of N random words and N random analogies, a - b + c, with
certify=1. Prints the number of survivors, the bytes that an answer needs (the plane, and the
vectors of the survivors) as a share of all vectors, and the milliseconds from request to reply.
With --beside, the programs of another build answer the same questions in turn. Exit status: 0 the
99th percentile of the share is at most a sixth, 1 it is more, 2 wrong usage.
"""
import argparse
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
from faults import percentile  # noqa: E402

MAX_SHARE = 1 / 6
PATIENCE_S = 120
GROUP_ROWS, STEP_DIMS, STEP_BYTES = 16, 8, 64  # kernels/planes/shape.hpp


def plain_words(model):
    """Words that need no quotes."""
    with open(os.path.join(model, "keys"), "rb") as file:
        return [word for word in file.read().split(b"\n") if re.fullmatch(rb"[a-z]+", word)]


def connect(path, process):
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit and process.poll() is None:
        try:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            return connection.makefile("rwb")
        except OSError:
            time.sleep(0.01)
    sys.exit("survivors.py: the daemon does not listen")


def ask(stream, request):
    """Asks; returns the keys of the status line, and skips the other lines."""
    stream.write(request + b"\n")
    stream.flush()
    status = stream.readline()
    if not status.startswith(b"OK "):
        sys.exit(f"survivors.py: {request!r}: {status!r}")
    for _ in range(int(status.split()[1])):
        stream.readline()
    return dict(field.split(b"=", 1) for field in status.split()[2:])


class Daemon:
    """A daemon of the programs in `bin_dir`, which listens in the directory `work`."""

    def __init__(self, bin_dir, work, arguments):
        path = os.path.join(work, f"s{len(os.listdir(work))}")
        command = [os.path.join(bin_dir, "gloved"), "--model", arguments.model, "--socket", path]
        command += ["--engine", arguments.engine]
        self.bin_dir = bin_dir
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.stream = connect(path, self.process)
        self.answers = []
        self.ms = []

    def ask(self, request):
        begun = time.perf_counter()
        self.answers.append(ask(self.stream, request))
        self.ms.append((time.perf_counter() - begun) * 1000)


def report(kind, daemon, plane_bytes, vector_bytes, all_bytes):
    """Prints a line about the answers of a daemon, and returns the percentile that is judged."""
    survivors = [int(answer[b"survivors"]) for answer in daemon.answers]
    shares = [(plane_bytes + vector_bytes * count) / all_bytes for count in survivors]
    passes = sorted({answer[b"pass"].decode() for answer in daemon.answers})
    counts, bytes_ = (
        (percentile(each, 0.5), percentile(each, 0.99), max(each)) for each in (survivors, shares)
    )
    print(
        f"{kind:18} {counts[0]:9,} {counts[1]:7,} {counts[2]:7,}   "
        f"{bytes_[0]:7.2%} {bytes_[1]:7.2%} {bytes_[2]:7.2%}   "
        f"{percentile(daemon.ms, 0.5):7.3f} {percentile(daemon.ms, 0.99):7.3f}   "
        f"{' '.join(passes)}   {daemon.bin_dir}"
    )
    return percentile(shares, 0.99) if passes == ["plane"] else 1


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("bin")
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--beside")
    arguments = parser.parse_args()
    words = plain_words(arguments.model)
    pick = random.Random(7)
    worst = 0
    daemons = []
    with tempfile.TemporaryDirectory() as work:
        try:
            for bin_dir in filter(None, [arguments.beside, arguments.bin]):
                daemons.append(Daemon(bin_dir, work, arguments))
            facts = dict(line.split(b"\t", 1) for line in stats(daemons[-1].stream))
            rows, dim = int(facts[b"rows"]), int(facts[b"dim"])
            plane_bytes = -(-rows // GROUP_ROWS) * (-(-dim // STEP_DIMS) + 1) * STEP_BYTES
            all_bytes = rows * dim * 4
            print(
                f"{rows:,} x {dim}, k={arguments.k}; the plane alone is"
                f" {plane_bytes / all_bytes:.2%} of the vectors"
            )
            print(
                f"{'asked':18} {'survivors':>9} {'p99':>7} {'max':>7}  "
                f" {'bytes':>7} {'p99':>7} {'max':>7}   {'ms':>7} {'p99':>7}   passes"
            )
            kinds = {
                "random words": lambda: pick.choice(words),
                "analogies a-b+c": lambda: b"%s - %s + %s" % tuple(pick.sample(words, 3)),
            }
            for kind, make in kinds.items():
                for daemon in daemons:
                    daemon.answers, daemon.ms = [], []
                for number in range(arguments.count):
                    request = b"NEAR certify=1 k=%d " % arguments.k + make()
                    for daemon in daemons if number % 2 else daemons[::-1]:
                        daemon.ask(request)
                for daemon in daemons:
                    share = report(kind, daemon, plane_bytes, 4 * dim, all_bytes)
                    if daemon is daemons[-1]:
                        worst = max(worst, share)
        finally:
            for daemon in daemons:
                daemon.process.terminate()
                daemon.process.wait()
    return 0 if worst <= MAX_SHARE else 1


def stats(stream):
    stream.write(b"STATS\n")
    stream.flush()
    count = int(stream.readline().split()[1])
    return [stream.readline().rstrip(b"\n") for _ in range(count)]


if __name__ == "__main__":
    sys.exit(main())
