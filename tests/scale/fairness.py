#!/usr/bin/env python3
"""Measures whether connections share gloved fairly, on a model of full size.

    fairness.py BIN_DIR MODEL [--rounds N] [--seconds S] [--only together|flood] [--threads T]

together: 64 connections with one request at a time must get at least 4 times the answers per second
of one such connection, with --batch-ms 100: waiting requests share a pass over memory. flood: a
client with one request at a time runs alone, and beside one that keeps 10,000 requests ahead, with
the default --batch-ms. Its 99th percentile may be at most 4 times that alone.

Both halves of a round run right after each other; the median ratio of the rounds decides. The flood
runs in its own process. The processor time of all is printed: on 2 processors the clients must not
need what they measure. Exit status: 0 both held, 1 one did not, 2 wrong usage.
"""
import argparse
import contextlib
import os
import random
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
from faults import percentile  # noqa: E402

TOGETHER = 64
MIN_RATIO = 4.0
BATCH_MS = 100
SENT_AHEAD = 10_000
MAX_RATIO = 4.0
PATIENCE_S = 60
WORDS = 5000


def plain_words(model):
    """Words that need no quotes."""
    with open(os.path.join(model, "keys"), "rb") as file:
        words = [word for word in file.read().split(b"\n") if re.fullmatch(rb"[a-z]+", word)]
    return random.Random(5).sample(words, min(WORDS, len(words)))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def daemon(arguments, work, *options):
    path = os.path.join(work, "s")
    command = [os.path.join(arguments.bin, "gloved"), "--model", arguments.model]
    command += ["--socket", path, "--engine", "cpu", "--threads", str(arguments.threads), *options]
    with open(os.path.join(work, "log"), "w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        try:
            limit = time.monotonic() + PATIENCE_S
            while True:
                with contextlib.suppress(OSError):
                    connect(path).close()
                    break
                if process.poll() is not None or time.monotonic() > limit:
                    log.seek(0)
                    sys.exit(f"gloved does not serve: {log.read()}")
                time.sleep(0.02)
            yield path, process.pid
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    if process.returncode != 0:
        sys.exit(f"gloved ends with {process.returncode}")


def connect(path):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(PATIENCE_S)
    made.connect(path)
    return made


class Answer:
    """Finds the end of a reply, which is always OK with lines, in little time."""

    def __init__(self):
        self.got = b""

    def add(self, data):
        self.got += data
        status, found, _ = self.got.partition(b"\n")
        if not found:
            return False
        if not status.startswith(b"OK "):
            sys.exit(f"unexpected reply: {status.decode(errors='replace')}")
        if self.got.count(b"\n") <= int(status.split()[1]):
            return False
        self.got = b""
        return True


def ask_one_by_one(path, words, seconds):
    """The milliseconds of each request of a lone client."""
    times = []
    answer = Answer()
    with connect(path) as connection:
        until = time.monotonic() + seconds
        while (begun := time.perf_counter()) and time.monotonic() < until:
            connection.sendall(b"NEAR " + words[len(times) % len(words)] + b"\n")
            while True:
                data = connection.recv(1 << 16)
                if not data:
                    sys.exit("the daemon closed the connection")
                if answer.add(data):
                    break
            times.append((time.perf_counter() - begun) * 1000)
    return times


def ask_together(path, words, seconds, count):
    """Answers a second that `count` connections get, each with one request at a time."""
    answered = 0
    chance = random.Random(count)
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(connect(path))
            selector.register(connection, selectors.EVENT_READ, Answer())
            connection.sendall(b"NEAR " + chance.choice(words) + b"\n")
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + seconds:
            for key, _ in selector.select(PATIENCE_S):
                data = key.fileobj.recv(1 << 16)
                if not data:
                    sys.exit("the daemon closed a connection")
                if key.data.add(data):
                    answered += 1
                    key.fileobj.sendall(b"NEAR " + chance.choice(words) + b"\n")
        return answered / (now - begun)


def flood(path, words):
    """Keeps SENT_AHEAD requests unanswered until SIGTERM. Never returns."""
    chance = random.Random(9)
    requests = [b"NEAR " + chance.choice(words) + b"\n" for _ in range(2000)]
    connection = connect(path)
    connection.setblocking(False)
    unsent = b""
    ahead = 0
    rest = b""
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    while True:
        if ahead < SENT_AHEAD - 1000:
            more = SENT_AHEAD - ahead
            unsent += b"".join(requests[i % len(requests)] for i in range(more))
            ahead += more
        if unsent:
            with contextlib.suppress(BlockingIOError):
                unsent = unsent[connection.send(unsent) :]
        selector.modify(connection, selectors.EVENT_READ | (selectors.EVENT_WRITE if unsent else 0))
        selector.select(PATIENCE_S)
        with contextlib.suppress(BlockingIOError):
            data = rest + connection.recv(1 << 20)
            # Words have no blanks, so this is always a status line.
            ahead -= data.count(b"OK 10")
            rest = data[-4:]


@contextlib.contextmanager
def flooding(path, words):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            flood(path, words)
        finally:
            os._exit(status)
    try:
        time.sleep(1)  # until the queue is full and the daemon has measured its batches
        yield pid
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            sys.exit("the flood ended by itself")
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def stats(path):
    with connect(path) as connection:
        connection.sendall(b"STATS\n")
        answer = Answer()
        text = b""
        while True:
            data = connection.recv(1 << 16)
            text += data
            if not data or answer.add(data):
                break
    return dict(line.split("\t", 1) for line in text.decode().splitlines() if "\t" in line)


def together(arguments, words, work):
    print(f"together: {TOGETHER} connections against 1, --batch-ms {BATCH_MS}")
    ratios = []
    with daemon(arguments, work, "--batch-ms", str(BATCH_MS)) as (path, pid):
        ask_one_by_one(path, words, 0.5)
        for number in range(arguments.rounds):
            one = ask_together(path, words, arguments.seconds, 1)
            before, own_before, batches = cpu_seconds(pid), time.process_time(), stats(path)
            many = ask_together(path, words, arguments.seconds, TOGETHER)
            after = stats(path)
            queries = int(after["queries"]) - int(batches["queries"])
            ratios.append(many / one)
            passes = max(1, int(after["batches"]) - int(batches["batches"]))
            used = (cpu_seconds(pid) - before) / arguments.seconds
            own = (time.process_time() - own_before) / arguments.seconds
            print(
                f"  round {number + 1}: one {one:7.1f}/s, {TOGETHER} {many:7.1f}/s, ratio"
                f" {many / one:5.2f}; {queries / passes:.1f} a batch; processors used: daemon"
                f" {used:.2f}, clients {own:.2f}",
                flush=True,
            )
    ratio = statistics.median(ratios)
    held = ratio >= MIN_RATIO
    print(
        f"  {'held' if held else 'MISSED'}: median ratio {ratio:.2f}, wanted at least {MIN_RATIO:g}"
    )
    return held


def beside_flood(arguments, words, work):
    print(f"flood: a lone client beside {SENT_AHEAD:,} requests sent ahead, default --batch-ms")
    ratios = []
    with daemon(arguments, work) as (path, pid):
        ask_one_by_one(path, words, 0.5)
        for number in range(arguments.rounds):
            quiet = ask_one_by_one(path, words, arguments.seconds)
            with flooding(path, words) as flooder:
                before, flood_before, batches = cpu_seconds(pid), cpu_seconds(flooder), stats(path)
                loud = ask_one_by_one(path, words, arguments.seconds)
                used, flood_used, after = (
                    cpu_seconds(pid) - before,
                    cpu_seconds(flooder) - flood_before,
                    stats(path),
                )
            queries = int(after["queries"]) - int(batches["queries"])
            ratios.append(percentile(loud, 0.99) / percentile(quiet, 0.99))
            alone, beside = (
                f"p50 {percentile(times, 0.5):6.2f} p99 {percentile(times, 0.99):6.2f} ms"
                for times in (quiet, loud)
            )
            passes = max(1, int(after["batches"]) - int(batches["batches"]))
            print(
                f"  round {number + 1}: alone {alone}, beside {beside}, ratio of p99"
                f" {ratios[-1]:5.2f}; {queries / passes:.1f} a batch, predicted for one"
                f" {int(after['single_query_us']) / 1000:.2f} ms;"
                f" flood {(queries - len(loud)) / arguments.seconds:.0f}/s; processors used: daemon"
                f" {used / arguments.seconds:.2f}, flood {flood_used / arguments.seconds:.2f}",
                flush=True,
            )
    ratio = statistics.median(ratios)
    held = ratio <= MAX_RATIO
    print(
        f"  {'held' if held else 'MISSED'}: median ratio {ratio:.2f}, wanted at most {MAX_RATIO:g}"
    )
    return held


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bin", help="the build's folder of programs, build/dev/bin")
    parser.add_argument("model", help="directory made by gloved-convert")
    parser.add_argument("--rounds", type=int, default=5, help="(%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=5, help="of each half of a round (%(default)s)"
    )
    parser.add_argument("--only", choices=("together", "flood"))
    parser.add_argument("--threads", type=int, default=0, help="of the daemon; 0: one a processor")
    arguments = parser.parse_args()
    words = plain_words(arguments.model)
    held = True
    with tempfile.TemporaryDirectory(prefix="gloved-fair-") as work:
        if arguments.only != "flood":
            held = together(arguments, words, work) and held
        if arguments.only != "together":
            held = beside_flood(arguments, words, work) and held
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
