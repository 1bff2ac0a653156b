#!/usr/bin/env python3
"""Reloads a model again and again while clients ask it and another model of the same daemon.

    reload.py BIN_DIR MODEL_A MODEL_B [--reloads N] [--clients N] [--engine NAME]

Before each of N (10) RELOADs, A and B change places under one name. Every answer must be, line by
line, the cpu engine's answer for the generation in its status line; none may fail. At the end own
memory and, on a GPU, device memory must be as after the first reload. Models are copied, by hard
links if possible, so they do not change.

Exit status: 0 all of it held, 1 something did not, 2 wrong usage.
"""
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402

WORDS = 40
# Memory that allocators keep, in bytes and in MiB.
SLACK = {"own memory": 4 << 20, "device memory": 4}
GROWTH = 1.02


def sample_of(*models):
    """Random words that all models have."""
    keys = (pathlib.Path(models[0]) / "keys").read_bytes().split(b"\n")[:-1]
    others = [set((pathlib.Path(model) / "keys").read_bytes().split(b"\n")) for model in models[1:]]
    words = [
        word
        for word in random.Random(1).sample(keys, min(len(keys), 50 * WORDS))
        if all(word in other for other in others)
    ]
    return words[:WORDS]


def link_tree(source, target):
    os.mkdir(target)
    for name in os.listdir(source):
        try:
            os.link(os.path.join(source, name), os.path.join(target, name))
        except OSError:
            shutil.copy(os.path.join(source, name), os.path.join(target, name))


class Run:
    """A daemon with a model that is reloaded (live) and one that is not (still)."""

    def __init__(self, arguments, work, words):
        self.words = words
        self.faults = []
        self.control = None
        self.counts = [0] * (arguments.clients + 1)
        self.stop = threading.Event()
        self.live, self.spare = (os.path.join(work, name) for name in ("live", "spare"))
        link_tree(arguments.a, self.live)
        link_tree(arguments.b, self.spare)
        options = ("--model", f"still={arguments.a}", "--pin", "off")
        self.daemon = harness.Service(
            arguments.bin, work, f"live={self.live}", *options, engine=arguments.engine
        )

    def exchange(self):
        """Puts the other model in place and reloads."""
        os.rename(self.live, self.live + ".aside")
        os.rename(self.spare, self.live)
        os.rename(self.live + ".aside", self.spare)
        reply = self.control.ask(b"RELOAD live")
        if not reply.startswith(b"OK 1"):
            self.faults.append(f"RELOAD: {reply!r}")

    def answers_of_cpu(self):
        """The generation, and its answers by the cpu engine."""
        answers = {}
        for word in self.words:
            reply = self.control.ask(b"NEAR k=5 engine=cpu " + harness.quoted(word))
            answers[word] = harness.lines_of(reply)
        return harness.generation_of(reply), answers

    def learn(self):
        """Learns the answers of both models."""
        self.known = dict([self.answers_of_cpu()])
        self.exchange()
        self.known.update([self.answers_of_cpu()])
        self.still = harness.generation_of(self.control.ask(b"USE still"))

    def ask(self, number):
        """A client, in a thread of its own."""
        connection = harness.Connection(self.daemon.path)
        chance = random.Random(number)
        # The last client asks the model that is not reloaded.
        model = b"still" if number == len(self.counts) - 1 else b"live"
        while not self.stop.is_set():
            word = chance.choice(self.words)
            reply = connection.ask(b"NEAR k=5 model=" + model + b" " + harness.quoted(word))
            generation = harness.generation_of(reply)
            self.counts[number] += 1
            if harness.outcome(reply) != "OK":
                self.faults.append(f"{model}: {word} {reply}")
            elif harness.lines_of(reply) != self.known[generation][word]:
                self.faults.append(f"{model}: {word} {reply}")
            elif model == b"still" and generation != self.still:
                self.faults.append(f"another generation of the model left alone: {generation}")

    def settled_memory(self):
        """Own memory and device memory, once replaced models are freed."""
        harness.wait_until(lambda: self.daemon.statistics()["retired_models"] == "0")
        time.sleep(1)
        return int(self.daemon.statistics()["own_memory_bytes"]), harness.device_memory()

    def reload(self, reloads):
        """Reloads while clients ask. Returns seconds, and memory before and after."""
        threads = [
            threading.Thread(target=self.ask, args=(number,), daemon=True)
            for number in range(len(self.counts))
        ]
        for thread in threads:
            thread.start()
        self.exchange()
        before = self.settled_memory()
        begun = time.monotonic()
        for _ in range(reloads):
            self.exchange()
        seconds = time.monotonic() - begun
        # The two models differ in size: compare the same one.
        if reloads % 2:
            self.exchange()
        after = self.settled_memory()
        self.stop.set()
        for thread in threads:
            thread.join()
        return seconds, before, after


@harness.program(
    harness.option("a", None, "directory made by gloved-convert"),
    harness.option("b", None, "another one"),
    harness.option("--reloads", 10, "reloads under load"),
    harness.option("--clients", 4, "clients of the model that is reloaded"),
    harness.option("--engine", "auto", "engine of the daemon"),
)
def main(arguments, verdicts):
    words = sample_of(arguments.a, arguments.b)
    if not words:
        sys.exit("the models have no words in common")
    beside = os.path.dirname(os.path.abspath(arguments.a))
    with tempfile.TemporaryDirectory(prefix="gloved-reload-", dir=beside) as work:
        run = Run(arguments, work, words)
        with run.daemon:
            run.control = harness.Connection(run.daemon.path)
            run.learn()
            seconds, memory, after = run.reload(arguments.reloads)
            engine = run.daemon.statistics()["engine"]
            verdicts.add(*run.daemon.stop())
    verdicts.blame("answers", run.faults, f"{sum(run.counts)} queries")
    verdicts.judge("clients", all(run.counts), f"{run.counts} queries of each")
    for name, before, now in zip(("own memory", "device memory"), memory, after):
        if before is not None:
            limit = before * GROWTH + SLACK[name]
            verdicts.judge(name, now <= limit, f"{now} after {before}")
    return f"engine {engine}, {arguments.reloads} reloads in {seconds:.1f} s"
