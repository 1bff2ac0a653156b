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
import contextlib
import os
import random
import re
import selectors
import signal
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402
from harness import PATIENCE_S, percentile  # noqa: E402

TOGETHER = 64
MIN_RATIO = 4.0
BATCH_MS = 100
SENT_AHEAD = 10_000
MAX_RATIO = 4.0
WORDS = 5000


def plain_words(model):
    """Words that need no quotes."""
    with open(os.path.join(model, "keys"), "rb") as file:
        words = [word for word in file.read().split(b"\n") if re.fullmatch(rb"[a-z]+", word)]
    return random.Random(5).sample(words, min(WORDS, len(words)))


def service(arguments, *options):
    threads = str(arguments.threads)
    given = (arguments.bin, arguments.work, arguments.model, "--threads", threads, *options)
    return harness.Service(*given)


def ask_one_by_one(path, words, seconds):
    """The milliseconds of each request of a lone client."""
    times = []
    with harness.Connection(path) as connection:
        until = time.monotonic() + seconds
        while (begun := time.perf_counter()) and time.monotonic() < until:
            harness.fields_of(connection.ask(b"NEAR " + words[len(times) % len(words)]))
            times.append((time.perf_counter() - begun) * 1000)
    return times


def ask_together(path, words, seconds, count):
    """Answers a second that `count` connections get, each with one request at a time."""
    answered = 0
    chance = random.Random(count)
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(harness.Connection(path)).socket
            selector.register(connection, selectors.EVENT_READ, harness.Replies())
            connection.sendall(b"NEAR " + chance.choice(words) + b"\n")
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + seconds:
            for key, _ in selector.select(PATIENCE_S):
                data = key.fileobj.recv(1 << 16)
                if not data:
                    sys.exit("the daemon closed a connection")
                for reply in key.data.take(data):
                    harness.fields_of(reply)
                    answered += 1
                    key.fileobj.sendall(b"NEAR " + chance.choice(words) + b"\n")
        return answered / (now - begun)


def flood(path, words):
    """Keeps SENT_AHEAD requests unanswered until SIGTERM. Never returns."""
    chance = random.Random(9)
    requests = [b"NEAR " + chance.choice(words) + b"\n" for _ in range(2000)]
    connection = harness.Connection(path).socket
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


def together(arguments, words, verdicts):
    print(f"together: {TOGETHER} connections against 1, --batch-ms {BATCH_MS}")
    ratios = []
    with service(arguments, "--batch-ms", str(BATCH_MS)) as daemon:
        path = daemon.path
        ask_one_by_one(path, words, 0.5)
        for number in range(arguments.rounds):
            one = ask_together(path, words, arguments.seconds, 1)
            before, own_before = daemon.processor_s(), time.process_time()
            batches = daemon.statistics()
            many = ask_together(path, words, arguments.seconds, TOGETHER)
            after = daemon.statistics()
            queries = int(after["queries"]) - int(batches["queries"])
            ratios.append(many / one)
            passes = max(1, int(after["batches"]) - int(batches["batches"]))
            used = (daemon.processor_s() - before) / arguments.seconds
            own = (time.process_time() - own_before) / arguments.seconds
            print(
                f"  round {number + 1}: one {one:7.1f}/s, {TOGETHER} {many:7.1f}/s, ratio"
                f" {many / one:5.2f}; {queries / passes:.1f} a batch; processors used: daemon"
                f" {used:.2f}, clients {own:.2f}",
                flush=True,
            )
    ratio = statistics.median(ratios)
    text = f"median ratio {ratio:.2f}, wanted at least {MIN_RATIO:g}"
    verdicts.judge("together", ratio >= MIN_RATIO, text)


def beside_flood(arguments, words, verdicts):
    print(f"flood: a lone client beside {SENT_AHEAD:,} requests sent ahead, default --batch-ms")
    ratios = []
    with service(arguments) as daemon:
        path = daemon.path
        ask_one_by_one(path, words, 0.5)
        for number in range(arguments.rounds):
            quiet = ask_one_by_one(path, words, arguments.seconds)
            with flooding(path, words) as flooder:
                before, flood_before = daemon.processor_s(), harness.processor_s(flooder)
                batches = daemon.statistics()
                loud = ask_one_by_one(path, words, arguments.seconds)
                used = daemon.processor_s() - before
                flood_used = harness.processor_s(flooder) - flood_before
                after = daemon.statistics()
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
    text = f"median ratio {ratio:.2f}, wanted at most {MAX_RATIO:g}"
    verdicts.judge("flood", ratio <= MAX_RATIO, text)


@harness.program(
    harness.option("model", None, "directory made by gloved-convert"),
    harness.option("--rounds", 5, "rounds of each measurement"),
    harness.option("--seconds", 5.0, "length of each half of a round"),
    harness.option("--only", None, "one measurement", choices=("together", "flood")),
    harness.option("--threads", 0, "threads of the daemon; 0: one a processor"),
)
def main(arguments, verdicts):
    words = plain_words(arguments.model)
    if arguments.only != "flood":
        together(arguments, words, verdicts)
    if arguments.only != "together":
        beside_flood(arguments, words, verdicts)
