#!/usr/bin/env python3
"""Measures how many rows a plane leaves to be read, for queries of real words.

    survivors.py BIN_DIR MODEL [--count N] [--engine NAME] [--k K] [--beside BIN_DIR]

Asks a daemon for the neighbours of N random words and N random analogies, a - b + c, with
certify=1. Prints the number of survivors, the bytes that an answer needs (the plane, and the
vectors of the survivors) as a share of all vectors, and the milliseconds from request to reply.
With --beside, the programs of another build answer the same questions in turn. Exit status: 0 the
99th percentile of the share is at most a sixth, 1 it is more, 2 wrong usage.
"""
import contextlib
import os
import random
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402
from harness import percentile  # noqa: E402

MAX_SHARE = 1 / 6
GROUP_ROWS, STEP_DIMS, STEP_BYTES = 16, 8, 64  # kernels/planes/shape.hpp


def plain_words(model):
    """Words that need no quotes."""
    with open(os.path.join(model, "keys"), "rb") as file:
        return [word for word in file.read().split(b"\n") if re.fullmatch(rb"[a-z]+", word)]


class Daemon(harness.Service):
    """A daemon of the programs in `bin_dir`, and what it was asked."""

    def __init__(self, bin_dir, arguments):
        work = tempfile.mkdtemp(dir=arguments.work)
        super().__init__(bin_dir, work, arguments.model, engine=arguments.engine)
        self.bin_dir = bin_dir
        self.connection = None
        self.replied = []
        self.ms = []

    def start(self):
        super().start()
        self.connection = harness.Connection(self.path)

    def ask(self, request):
        begun = time.perf_counter()
        reply = self.connection.ask(request)
        self.ms.append((time.perf_counter() - begun) * 1000)
        self.replied.append(harness.fields_of(reply))


def report(kind, daemon, plane_bytes, vector_bytes, all_bytes):
    """Prints a line about the answers of a daemon, and returns the percentile that is judged."""
    survivors = [int(answer["survivors"]) for answer in daemon.replied]
    shares = [(plane_bytes + vector_bytes * count) / all_bytes for count in survivors]
    passes = sorted({answer["pass"] for answer in daemon.replied})
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


@harness.program(
    harness.option("model", None, "directory made by gloved-convert"),
    harness.option("--count", 500, "questions of each kind"),
    harness.option("--engine", "cpu", "engine of the daemon"),
    harness.option("--k", 10, "neighbours of each"),
    harness.option("--beside", None, "programs of another build", metavar="BIN_DIR"),
)
def main(arguments, verdicts):
    words = plain_words(arguments.model)
    pick = random.Random(7)
    with contextlib.ExitStack() as stack:
        daemons = [
            stack.enter_context(Daemon(bin_dir, arguments))
            for bin_dir in (arguments.beside, arguments.bin)
            if bin_dir
        ]
        facts = daemons[-1].statistics()
        rows, dim = int(facts["rows"]), int(facts["dim"])
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
                daemon.replied, daemon.ms = [], []
            for number in range(arguments.count):
                request = b"NEAR certify=1 k=%d " % arguments.k + make()
                for daemon in daemons if number % 2 else daemons[::-1]:
                    daemon.ask(request)
            for daemon in daemons:
                share = report(kind, daemon, plane_bytes, 4 * dim, all_bytes)
            verdicts.judge(kind, share <= MAX_SHARE, f"{share:.2%} of the vectors are read")
