#!/usr/bin/python3
"""Asks through Client and AsyncClient at the same time while the daemon is restarted.

    python_stress.py BIN_DIR [--seconds S] [--restarts N] [--threads T] [--coroutines C]

A daemon serves the sample of data/. T (64) threads share one Client and, in another process, C
(500) coroutines one AsyncClient. For S (60) seconds they make calls of one request, pipelines, and
calls that are cancelled. N (5) times the daemon ends, by SIGTERM and SIGKILL in turn, and starts
again on the same socket. Every answer must be the one that a daemon without other work gave before.
No call may fail, but a RELOAD may when the daemon ends: it is not sent twice. At the end no
connection may be left open.

Prints the calls of each verb, how often a call began again, and the slowest.
Exit status: 0 all of it held, 1 something did not.
"""
import asyncio
import collections
import faulthandler
import functools
import multiprocessing
import os
import pathlib
import random
import signal
import sys
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / name) for name in ("python", "tests/faults")]

import gloved  # noqa: E402
import harness  # noqa: E402
from gloved import _retry, requests  # noqa: E402

# Beyond the time of the run: whoever has not ended by then hangs.
PATIENCE_S = 60
PIPELINE = 50
RELOAD_EVERY_S = 2


class Figures:
    """What the run has seen so far. Any thread may add to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.calls = collections.Counter()
        self.cancelled = 0
        self.reloads_lost = 0
        self.retries = collections.Counter()
        self.by_kind = collections.Counter()
        self.slowest = {"thread": (0.0, ""), "coroutine": (0.0, "")}
        self.faults = []

    def add(self, kind, verb, seconds):
        with self.lock:
            self.calls[verb] += 1
            self.by_kind[kind] += 1
            self.slowest[kind] = max(self.slowest[kind], (seconds, verb))

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def as_dict(self):
        """For another process."""
        with self.lock:
            return {name: value for name, value in vars(self).items() if name != "lock"}

    def merge(self, other):
        """Adds what as_dict() returned in another process."""
        with self.lock:
            for name in ("calls", "by_kind", "retries"):
                getattr(self, name).update(other[name])
            self.cancelled += other["cancelled"]
            self.reloads_lost += other["reloads_lost"]
            self.faults += other["faults"]
            for kind, slowest in other["slowest"].items():
                self.slowest[kind] = max(self.slowest[kind], slowest)


def count_retries(figures):
    next_delay = _retry.Patience.next_delay

    def counted(self, error):
        delay = next_delay(self, error)
        with figures.lock:
            figures.retries[type(error).__name__] += 1
        return delay

    _retry.Patience.next_delay = counted


def all_requests(words, vectors):
    """Requests of every verb that reads the model: pairs of a verb and a request."""
    pick = random.Random(1)
    made = []
    for _ in range(60):
        a, b, c = pick.sample(words, 3)
        made += [
            ("near", requests.near(a)),
            ("near", requests.near([(a, 2.0), (b, -0.5), c], k=pick.choice((1, 20, 300)))),
            ("near", requests.near(a, prefix=b[0], fields=("row", "rank", "norm"))),
            ("near_vector", requests.near_vector(pick.choice(vectors))),
            ("analogy", requests.analogy(a, b, c, method=pick.choice(("add", "mul")))),
            ("rank", requests.rank(a, b)),
            ("sim", requests.sim(a, b)),
            ("dist", requests.dist(a, b)),
            ("odd", requests.odd(pick.sample(words, 5))),
            ("matrix", requests.matrix(pick.sample(words, 20))),
            ("vec", requests.vec(pick.sample(words, 3))),
            ("prefix", requests.prefix(a[:2], fields="rank")),
            ("has", requests.has([a, "no such word", "caf\udce9", b])),
            ("unknown_word", requests.near(f"{a} {b}")),
        ]
    made += [
        ("near, k=10,000", requests.near(words[0], k=10_000)),
        ("matrix of 300", requests.matrix(words[:300])),
        ("models", requests.models()),
        ("ping", requests.ping()),
        ("help", requests.help()),
    ]
    return made


def essence(answer):
    """What must not differ between two answers to the same request."""
    if isinstance(answer, gloved.UnknownWord):
        # In a flood the daemon leaves the similar words out.
        return (type(answer), answer.word)
    if isinstance(answer, Exception):
        return (type(answer), str(answer))
    if isinstance(answer, gloved.Answer):
        info = answer.info
        return (list(answer), info.model, info.rows, info.generation, info.engine)
    if hasattr(answer, "tobytes"):
        return answer.tobytes()
    return answer


def returned(answer):
    """The answer of a call, which an exception ended."""
    if isinstance(answer, Exception):
        raise answer
    return answer


class Load:
    """The threads and coroutines. Each draws calls at random until the time is over."""

    def __init__(self, cases, socket, seconds, figures):
        self.cases = cases
        self.figures = figures
        self.end = time.monotonic() + seconds
        self.client = gloved.Client(socket)
        # The daemon takes requests from connections in turn: one gets a small share beside 64.
        self.async_client = gloved.AsyncClient(socket, connections=8)

    def running(self):
        return time.monotonic() < self.end

    def check(self, kind, case, answer, begun):
        verb, request, expected = case
        self.figures.add(kind, verb, time.monotonic() - begun)
        if essence(answer) != expected:
            self.figures.fault(f"{kind}: {verb}: {request.line[:100]!r}: {answer!r:.300}")

    def draw(self, pick):
        """One case, or a few dozen of those that are short."""
        if pick.random() < 0.002:
            return [pick.choice(self.cases[-5:])]
        return pick.choices(self.cases[:-5], k=PIPELINE if pick.random() < 0.1 else 1)

    def one_thread(self, number):
        pick = random.Random(number)
        while self.running():
            cases = self.draw(pick)
            begun = time.monotonic()
            try:
                left = iter(cases)
                for answer in self.client.ask_all(
                    (request for _, request, _ in cases), return_exceptions=True
                ):
                    self.check("thread", next(left), answer, begun)
                    begun = time.monotonic()
                if next(left, None) is not None:
                    self.figures.fault("thread: a pipeline ended before its last answer")
            except Exception as error:
                self.figures.fault(f"thread: {cases[0][0]}: {error!r}")

    async def one_coroutine(self, number):
        pick = random.Random(1000 + number)
        while self.running():
            cases = self.draw(pick)
            try:
                if len(cases) > 1:
                    await self.pipeline(cases)
                elif pick.random() < 0.05:
                    await self.impatient(cases[0], pick.random() * 0.05)
                else:
                    await self.single(cases[0])
            except Exception as error:
                self.figures.fault(f"coroutine: {cases[0][0]}: {error!r}")

    async def single(self, case):
        begun = time.monotonic()
        try:
            answer = await self.async_client.ask(case[1])
        except gloved.UnknownWord as error:
            answer = error
        self.check("coroutine", case, answer, begun)

    async def pipeline(self, cases):
        begun = time.monotonic()
        left = iter(cases)
        async for answer in self.async_client.ask_all(
            (request for _, request, _ in cases), return_exceptions=True
        ):
            self.check("coroutine", next(left), answer, begun)
            begun = time.monotonic()
        if next(left, None) is not None:
            self.figures.fault("coroutine: a pipeline ended before its last answer")

    async def impatient(self, case, seconds):
        try:
            await asyncio.wait_for(self.single(case), seconds)
        except asyncio.TimeoutError:
            with self.figures.lock:
                self.figures.cancelled += 1

    def check_reload(self, kind, reload):
        """The answer of reload(); that the daemon ends meanwhile is no fault."""
        begun = time.monotonic()
        try:
            models = reload()
            self.figures.add(kind, "reload", time.monotonic() - begun)
            if [model.model for model in models] != ["glove"]:
                self.figures.fault(f"{kind}: reload: {models!r}")
        except (gloved.ConnectionFailed, gloved.Unavailable):
            with self.figures.lock:
                self.figures.reloads_lost += 1
        except Exception as error:
            self.figures.fault(f"{kind}: reload: {error!r}")

    def reloading_thread(self):
        while self.running():
            time.sleep(RELOAD_EVERY_S)
            self.check_reload("thread", self.client.reload)

    async def reloading_coroutine(self):
        while self.running():
            await asyncio.sleep(RELOAD_EVERY_S)
            (answer,) = await asyncio.gather(self.async_client.reload(), return_exceptions=True)
            self.check_reload("coroutine", functools.partial(returned, answer))

    async def all_coroutines(self, count):
        async with self.async_client:
            coroutines = [self.one_coroutine(number) for number in range(count)]
            await asyncio.gather(self.reloading_coroutine(), *coroutines)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            self.figures.fault(f"{len(left)} tasks are left after close()")


def restart(daemon, times, seconds, begun, figures):
    """Ends the daemon and starts it again, `times` times at even distances."""
    for number in range(times):
        at = begun + seconds * (number + 1) / (times + 1)
        time.sleep(max(0.0, at - time.monotonic()))
        ended_by = signal.SIGKILL if number % 2 else signal.SIGTERM
        stopping = time.monotonic()
        for complaint in daemon.stop(ended_by):
            figures.fault(complaint)
        daemon.start()
        print(
            f"{time.monotonic() - begun:6.1f} s  restarted after {ended_by.name},"
            f" which took {time.monotonic() - stopping:.2f} s"
        )


def expected_answers(daemon):
    """Every request of the run with the answer of a daemon that has nothing else to do."""
    with gloved.Client(daemon.path) as client:
        words = [word.word for word in client.prefix("s", k=500)]
        vectors = list(client.vec(words[:20]))
        cases = all_requests(words, vectors)
        answers = client.ask_all((request for _, request in cases), return_exceptions=True)
        return [(verb, request, essence(answer)) for (verb, request), answer in zip(cases, answers)]


def run(arguments, figures):
    model = harness.convert_sample(arguments.bin, arguments.work)
    with harness.Service(arguments.bin, arguments.work, f"glove={model}", engine=None) as daemon:
        cases = expected_answers(daemon)
        count_retries(figures)
        begun = time.monotonic()
        load = Load(cases, daemon.path, arguments.seconds, figures)
        # One process has one interpreter lock: 64 busy threads would hold up the loop.
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(
            target=run_coroutines, args=(load, arguments.coroutines, sender), daemon=True
        )
        process.start()
        threads = [
            threading.Thread(target=load.one_thread, args=(number,), daemon=True)
            for number in range(arguments.threads)
        ]
        threads.append(threading.Thread(target=load.reloading_thread, daemon=True))
        for each in threads:
            each.start()
        restart(daemon, arguments.restarts, arguments.seconds, begun, figures)
        for each in threads:
            each.join(max(0.0, load.end + PATIENCE_S - time.monotonic()))
        hanging = sum(each.is_alive() for each in threads)
        if hanging:
            figures.fault(f"{hanging} threads hang")
            faulthandler.dump_traceback()
        load.client.close()
        if receiver.poll(max(0.0, load.end + PATIENCE_S - time.monotonic())):
            figures.merge(receiver.recv())
            process.join(PATIENCE_S)
        else:
            figures.fault("coroutines hang")
            process.kill()


def run_coroutines(load, count, sender):
    """In a process of its own: all coroutines. Sends what they have seen."""
    faulthandler.dump_traceback_later(load.end + PATIENCE_S / 2 - time.monotonic())
    before = sockets_open()
    asyncio.run(load.all_coroutines(count))
    check_sockets(load.figures, before)
    sender.send(load.figures.as_dict())


def sockets_open():
    links = []
    for each in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{each}"))
        except FileNotFoundError:
            pass
    return sum(link.startswith("socket:") for link in links)


def check_sockets(figures, before):
    left = sockets_open() - before
    if left:
        figures.fault(f"{left} sockets are left open")


def report(figures):
    for verb, count in sorted(figures.calls.items()):
        print(f"{count:9,} {verb}")
    for kind, count in sorted(figures.by_kind.items()):
        print(f"{count:9,} answers to {kind}s")
    print(f"{figures.cancelled:9,} calls cancelled")
    print(f"{figures.reloads_lost:9,} reloads that the end of the daemon cancelled")
    for error, count in sorted(figures.retries.items()):
        print(f"{count:9,} times asked again after {error}")
    for kind, (seconds, verb) in sorted(figures.slowest.items()):
        print(f"{seconds:9.2f} s for the slowest call of a {kind} ({verb})")


@harness.program(
    harness.option("--seconds", 60.0, "length of the run"),
    harness.option("--restarts", 5, "restarts of the daemon"),
    harness.option("--threads", 64, "threads of the Client"),
    harness.option("--coroutines", 500, "coroutines of the AsyncClient"),
)
def main(arguments, verdicts):
    figures = Figures()
    before = sockets_open()
    run(arguments, figures)
    check_sockets(figures, before)
    report(figures)
    verdicts.blame("calls", figures.faults, "wrong answers, hangs and unexpected errors")
