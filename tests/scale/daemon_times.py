#!/usr/bin/env python3
"""Times a daemon: its start, its answers one at a time, and 64 requests sent at once.

    daemon_times.py BIN_DIR MODEL [--engine NAME] [--rounds N] [--queries N] [--k K]
                    [--daemon-options TEXT]

A table with milliseconds, and how often longer each is than a read of the model's values from the
page cache by one thread a core:

  read of the values     with read(2), as fast as the machine copies them
  exec to listening      until the log says that the daemon listens
  exec to first answer   until a client has the reply to its first NEAR; with
                         --daemon-options='--pin on' or '--pin off', how long a GPU takes to load
                         with and without page-locked memory
  one query at a time    as this client sees it, and of it the time by the daemon's clock (us=)
  an echo                a socket pair whose other end answers after the daemon's time: what is
                         left is the sockets and this client
  64 pipelined           from sending 64 requests to the last reply

The read and the two starts take turns, round after round. So do queries and echoes, 500 at a time,
since daemon and GPU go to sleep meanwhile. The last line is the daemon's memory without mapped
files after 100 queries, 4 of which ask for 10,000 words. How long text takes is told by
«time gloved-convert TEXT MODEL».

Exit status: 0 all was answered, 1 something was not, 2 wrong usage.
"""
import contextlib
import os
import random
import shlex
import socket
import statistics
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402

POLL_S = 0.0005
PIPELINED = 64
TURN = 500
QUERIES_BEFORE_MEMORY = 100
LARGE_EVERY = 25
LARGE_K = 10_000
# Enough for a 99th percentile where a query takes a millisecond or less.
QUERIES = {"cuda": 2000, "cpu": 100}
PIECE = 1 << 20


class Times:
    """Milliseconds of one thing that was measured so often; `queries` of each are its answers."""

    def __init__(self, what, queries=0):
        self.what, self.queries, self.ms = what, queries, []

    @contextlib.contextmanager
    def measured(self):
        begun = time.perf_counter()
        yield
        self.ms.append((time.perf_counter() - begun) * 1000)

    def row(self, floor_ms):
        median = statistics.median(self.ms)
        return (
            self.what,
            len(self.ms),
            f"{median:.3f}",
            f"{min(self.ms):.3f}",
            f"{harness.percentile(self.ms, 0.99):.3f}",
            f"{median / floor_ms:.2f}",
            f"{median / self.queries:.3f}" if self.queries else "",
        )


class Echo:
    """A process that waits, busily, for each number of milliseconds that it gets, then answers."""

    def __init__(self):
        self.near, far = socket.socketpair()
        self.child = os.fork()
        if not self.child:
            self.near.close()
            while data := far.recv(8):
                until = time.perf_counter() + struct.unpack("d", data)[0] / 1000
                while time.perf_counter() < until:
                    pass
                far.send(b".")
            os._exit(0)
        far.close()

    def ask(self, ms):
        self.near.send(struct.pack("d", ms))
        self.near.recv(1)

    def close(self):
        self.near.close()
        os.waitpid(self.child, 0)


def read_all(path):
    """Reads a file by one thread a core, which share its pieces."""
    size = os.path.getsize(path)
    threads = len(os.sched_getaffinity(0))
    file = os.open(path, os.O_RDONLY)

    def read(first):
        piece = bytearray(PIECE)
        for at in range(first * PIECE, size, threads * PIECE):
            os.preadv(file, [piece], at)

    readers = [threading.Thread(target=read, args=(first,)) for first in range(threads)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    os.close(file)


def first_answer(service, request):
    """The reply to a request that is sent as soon as the daemon listens."""
    while service.alive():
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            with harness.Connection(service.path) as connection:
                return connection.ask(request)
        time.sleep(POLL_S)
    raise harness.Broken(f"gloved does not serve: {service.log()}")


def wait_for_log(service):
    while "listening on" not in service.log():
        if not service.alive():
            raise harness.Broken(f"gloved does not serve: {service.log()}")
        time.sleep(POLL_S)


class Requests:
    """NEAR requests for random words whose vectors are not zero."""

    def __init__(self, model, connection, k):
        with open(os.path.join(model, "keys"), "rb") as file:
            keys = file.read().split(b"\n")[:-1]
        self.chance = random.Random(1)
        words = map(harness.quoted, self.chance.sample(keys, min(len(keys), 4096)))
        asked = ((word, connection.ask(b"SIM %s %s" % (word, word))) for word in words)
        self.words = [word for word, reply in asked if harness.outcome(reply) == "OK"]
        self.k = k

    def next(self, k=None):
        return b"NEAR k=%d %s" % (k or self.k, self.chance.choice(self.words))


def measure_singles(connection, requests, count, daemon):
    """Times of single queries, of these by the daemon's clock, and of echoes; and own memory."""
    single = Times("daemon: one query at a time", 1)
    inside, echoes = Times("  of it, by the daemon's clock"), Times("  an echo after as long")
    echo, own_bytes = Echo(), 0
    for number in range(max(count, QUERIES_BEFORE_MEMORY)):
        if number < QUERIES_BEFORE_MEMORY and number % LARGE_EVERY == 0:
            harness.fields_of(connection.ask(requests.next(LARGE_K)))
        else:
            request = requests.next()
            with single.measured():
                reply = connection.ask(request)
            inside.ms.append(int(harness.fields_of(reply)["us"]) / 1000)
        if number + 1 == QUERIES_BEFORE_MEMORY:
            own_bytes = int(daemon.statistics()["own_memory_bytes"])
        if number + 1 in (count, QUERIES_BEFORE_MEMORY) or number % TURN == TURN - 1:
            for ms in inside.ms[len(echoes.ms) :]:
                with echoes.measured():
                    echo.ask(ms)
            connection.ask(requests.next())
    echo.close()
    return [single, inside, echoes], own_bytes


def measure_pipelined(connection, requests, rounds):
    pipelined = Times(f"daemon: {PIPELINED} pipelined", PIPELINED)
    for number in range(rounds + 1):
        lines = b"".join(requests.next() + b"\n" for _ in range(PIPELINED))
        with pipelined.measured():
            connection.send(lines)
            replies = [connection.reply() for _ in range(PIPELINED)]
        if number == 0:
            pipelined.ms.clear()
        for reply in replies:
            harness.fields_of(reply)
    return pipelined


def measure_starts(make_service, model, requests, rounds):
    """Times of a read of the values, and of both starts."""
    read = Times("read of the values")
    listening = Times("daemon: exec to listening")
    answering = Times("daemon: exec to first answer", 1)
    for _ in range(rounds):
        with read.measured():
            read_all(os.path.join(model, "values"))
        for times, wait in (
            (listening, wait_for_log),
            (answering, lambda service: first_answer(service, requests.next())),
        ):
            service = make_service(waits=False)
            with times.measured():
                service.start()
                wait(service)
            if complaints := service.stop():
                raise harness.Broken("; ".join(complaints))
    return [read, listening, answering]


@harness.program(
    harness.option("model", None, "directory made by gloved-convert", type=harness.existing),
    harness.option("--engine", "auto", "engine of the daemon"),
    harness.option("--rounds", 9, "starts, and batches"),
    harness.option("--queries", 0, "single queries; 0: 2,000 on a GPU, 100 on a CPU"),
    harness.option("--k", 10, "words per answer"),
    harness.option("--daemon-options", "", "more options of the daemon, in one text"),
)
def main(arguments, verdicts):
    def make_service(**given):
        options = shlex.split(arguments.daemon_options)
        return harness.Service(
            arguments.bin, arguments.work, arguments.model, *options,
            engine=arguments.engine, **given,
        )  # fmt: skip

    with make_service() as daemon, harness.Connection(daemon.path) as connection:
        told = daemon.statistics()
        requests = Requests(arguments.model, connection, arguments.k)
        if not requests.words:
            sys.exit(f"{arguments.model}: every vector is zero; there is nothing to ask for")
        count = arguments.queries or QUERIES.get(told["engine"], QUERIES["cpu"])
        singles, own_bytes = measure_singles(connection, requests, count, daemon)
        pipelined = measure_pipelined(connection, requests, arguments.rounds)
    starts = measure_starts(make_service, arguments.model, requests, arguments.rounds)
    print(f"{told['engine_description']}; {told['rows']} × {told['dim']}, k={arguments.k}\n")
    header = ("what", "times", "ms p50", "ms min", "ms p99", "x read", "ms a query")
    floor_ms = statistics.median(starts[0].ms)
    harness.print_table(header, [each.row(floor_ms) for each in (*starts, *singles, pipelined)])
    return (
        f"own memory {own_bytes / 1e6:.1f} MB after {QUERIES_BEFORE_MEMORY} queries,"
        f" {QUERIES_BEFORE_MEMORY // LARGE_EVERY} of them with k={LARGE_K}"
    )
