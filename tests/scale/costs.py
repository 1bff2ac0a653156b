#!/usr/bin/env python3
"""Prints what each verb costs, and each stage of a NEAR, as tables in Markdown.

    costs.py BIN_DIR MODEL [--engine cpu|cuda] [--seconds S] [--rounds N]

A daemon of BIN_DIR serves MODEL; gloved-bench asks it for each kind of request in turn, round after
round, by one connection and by 64, each with one request outstanding. The figures are the medians
of the rounds: microseconds from sending a request to having its reply, at the 50th percentile, for
one client and for 64, and answers per second of the 64. The words are random; MATRIX has 20, ODD 4.

The second table has the stages of a NEAR with k=10 as STATS tells them, at the 50th percentile, of
a daemon for each number of connections; two seconds of warming up are among them. What is left of
the client's time is the socket and the client.

Exit status: 0 all were answered, 1 some were not, 2 wrong usage.
"""
import argparse
import csv
import itertools
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402

CLIENTS = (1, 64)
STAGE_CLIENTS = (1, 8, 64)
STAGES = ("wait", "compute", "deliver", "total")
# Before the stages are measured: a cpu engine may make a plane for batches meanwhile.
WARMING_S = 2
# What the table calls a request, gloved-bench's name for it, and k.
KINDS = (
    ("PING", "ping", None),
    ("HAS", "has", None),
    ("VEC", "vec", None),
    ("SIM", "sim", None),
    ("DIST", "dist", None),
    ("ODD of 4 words", "odd", None),
    ("MATRIX of 20 words", "matrix", None),
    ("PREFIX, k = 10", "prefix", 10),
    ("NEAR, k = 1", "near", 1),
    ("NEAR, k = 10", "near", 10),
    ("NEAR, k = 100", "near", 100),
    ("NEAR, k = 1,000", "near", 1000),
    ("NEAR, k = 10,000", "near", 10000),
    ("NEARVEC, k = 10", "nearvec", 10),
    ("ANALOGY, k = 10", "analogy", 10),
    ("ANALOGY method=mul, k = 10", "cosmul", 10),
    ("RANK", "rank", None),
)


def measure(bench, path, name, k, clients, seconds):
    """Microseconds at p50, and answers per second."""
    command = [bench, "load", path, "--mix", name, "--connections", str(clients), "--depth", "1"]
    command += ["--seconds", str(seconds), "--check", "0", "--format", "csv"]
    command += ["--k", str(k)] if k else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows = list(csv.reader(line for line in done.stdout.splitlines() if not line.startswith("#")))
    head = next(row for row in rows if row[:2] == ["what", "answers"])
    row = dict(zip(head, next(row for row in rows if row[:1] == [name])))
    if row["ERR"] != "0":
        sys.exit(f"{name}: {row['ERR']} requests were refused")
    return float(row["us p50"]), float(row["answers/s"])


def stages_of(arguments, clients):
    """The stages of a NEAR, and the client's own figure."""
    bench = os.path.join(arguments.bin, "gloved-bench")
    near = ("near", 10, clients, arguments.seconds * arguments.rounds)
    with tempfile.TemporaryDirectory() as work:
        given = (arguments.bin, work, arguments.model)
        with harness.Service(*given, engine=arguments.engine) as service:
            measure(bench, service.path, "near", 10, clients, WARMING_S)
            us, _ = measure(bench, service.path, *near)
            told = service.statistics()
    return [float(told[f"{stage}_p50_us"]) for stage in STAGES] + [us]


def figure(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("bin")
    parser.add_argument("model")
    parser.add_argument("--engine", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    bench = os.path.join(arguments.bin, "gloved-bench")
    figures = {}
    engine = arguments.engine
    with tempfile.TemporaryDirectory() as work:
        with harness.Service(arguments.bin, work, arguments.model, engine=engine) as service:
            for number, kind in itertools.product(range(arguments.rounds), KINDS):
                print(f"\rround {number + 1}: {kind[0]:40}", end="", file=sys.stderr)
                for clients in CLIENTS:
                    measured = measure(bench, service.path, *kind[1:], clients, arguments.seconds)
                    figures.setdefault((kind, clients), []).append(measured)
            print(file=sys.stderr)
            told = service.statistics()
    print(f"{told['engine_description']}; {told['rows']} × {told['dim']}\n")
    print("| request | one client, µs | 64 clients, µs | 64 clients, answers/s |")
    print("| --- | --- | --- | --- |")
    for kind in KINDS:
        alone, together = (figures[kind, clients] for clients in CLIENTS)
        print(
            f"| {kind[0]} | {figure(statistics.median(us for us, _ in alone))} "
            f"| {figure(statistics.median(us for us, _ in together))} "
            f"| {figure(statistics.median(rate for _, rate in together))} |"
        )
    print(f"\n| connections | {' | '.join(STAGES)} | to the client |")
    print("| --- " * (len(STAGES) + 2) + "|")
    for clients in STAGE_CLIENTS:
        print(f"| {clients} | {' | '.join(map(figure, stages_of(arguments, clients)))} |")


if __name__ == "__main__":
    main()
