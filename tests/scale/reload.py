#!/usr/bin/env python3
"""Reloads a model again and again while clients ask it and another model of the same daemon.

    reload.py BIN_DIR MODEL_A MODEL_B [--reloads N] [--clients N] [--engine NAME]

Before each of N (10) RELOADs, A and B change places under one name. Every answer must be, line by
line, the cpu engine's answer for the generation in its status line; none may fail. At the end own
memory and, on a GPU, device memory must be as after the first reload. Models are copied, by hard
links if possible, so they do not change.

Exit status: 0 all of it held, 1 something did not.
"""
import argparse
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

WORDS = 40
# Memory that allocators keep, in bytes and in MiB.
SLACK = {"own memory": 4 << 20, "device memory": 4}
GROWTH = 1.02
PATIENCE_S = 120


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def ask(self, line):
        """Asks; returns the status line's fields (an ERR line under the key ERR), and the lines."""
        self.socket.sendall(line + b"\n")
        status = self.file.readline().rstrip(b"\n")
        if not status.startswith(b"OK "):
            return {b"ERR": status}, []
        words = status.split(b" ")
        return dict(word.split(b"=", 1) for word in words[2:]), [
            self.file.readline() for _ in range(int(words[1]))
        ]


def quoted(word):
    return b'"' + b"".join(b"\\x%02x" % byte for byte in word) + b'"'


def device_memory():
    """MiB in use on all devices; None without devices."""
    if not shutil.which("nvidia-smi"):
        return None
    told = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True,
        check=False,
    )
    return sum(int(line) for line in told.stdout.split()) if told.returncode == 0 else None


def stats(connection):
    return dict(line.rstrip(b"\n").split(b"\t", 1) for line in connection.ask(b"STATS")[1])


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


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--reloads", type=int, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--engine", default="auto")
    return parser.parse_args()


class Run:
    """A daemon with a model that is reloaded (live) and one that is not (still)."""

    def __init__(self, arguments, work, words):
        self.words = words
        self.faults = []
        self.counts = [0] * (arguments.clients + 1)
        self.stop = threading.Event()
        self.live, self.spare, self.path = (
            os.path.join(work, name) for name in ("live", "spare", "s")
        )
        link_tree(arguments.a, self.live)
        link_tree(arguments.b, self.spare)
        command = [arguments.bin / "gloved", "--model", f"live={self.live}"]
        command += ["--model", f"still={arguments.a}", "--socket", self.path]
        command += ["--engine", arguments.engine, "--pin", "off"]
        self.daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def connect(self):
        begun = time.monotonic()
        while time.monotonic() < begun + PATIENCE_S:
            try:
                self.control = Connection(self.path)
                self.control.ask(b"PING")
                return
            except OSError:
                time.sleep(0.05)
        sys.exit("the daemon does not serve")

    def exchange(self):
        """Puts the other model in place and reloads."""
        os.rename(self.live, self.live + ".aside")
        os.rename(self.spare, self.live)
        os.rename(self.live + ".aside", self.spare)
        fields, lines = self.control.ask(b"RELOAD live")
        if b"ERR" in fields or len(lines) != 1:
            self.faults.append(f"RELOAD: {fields}")

    def answers_of_cpu(self):
        """The generation, and its answers by the cpu engine."""
        answers = {}
        for word in self.words:
            fields, lines = self.control.ask(b"NEAR k=5 engine=cpu " + quoted(word))
            answers[word] = lines
        return fields[b"generation"], answers

    def learn(self):
        """Learns the answers of both models."""
        self.known = dict([self.answers_of_cpu()])
        self.exchange()
        self.known.update([self.answers_of_cpu()])
        self.still = self.control.ask(b"USE still")[0][b"generation"]

    def ask(self, number):
        """A client, in a thread of its own."""
        connection = Connection(self.path)
        chance = random.Random(number)
        # The last client asks the model that is not reloaded.
        model = b"still" if number == len(self.counts) - 1 else b"live"
        while not self.stop.is_set():
            word = chance.choice(self.words)
            fields, lines = connection.ask(b"NEAR k=5 model=" + model + b" " + quoted(word))
            self.counts[number] += 1
            if b"ERR" in fields or lines != self.known[fields[b"generation"]][word]:
                self.faults.append(f"{model}: {word} {fields} {lines}")
            elif model == b"still" and fields[b"generation"] != self.still:
                self.faults.append(f"another generation of the model left alone: {fields}")

    def settled_memory(self):
        """Own memory and device memory, once replaced models are freed."""
        begun = time.monotonic()
        while (
            stats(self.control)[b"retired_models"] != b"0" and time.monotonic() < begun + PATIENCE_S
        ):
            time.sleep(0.05)
        time.sleep(1)
        return int(stats(self.control)[b"own_memory_bytes"]), device_memory()

    def reload(self, reloads):
        """Reloads while clients ask. Returns seconds, and memory before and after."""
        threads = [
            threading.Thread(target=self.ask, args=(number,)) for number in range(len(self.counts))
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

    def end(self):
        self.stop.set()
        self.daemon.terminate()
        if self.daemon.wait(PATIENCE_S) != 0:
            self.faults.append(f"the daemon ended with {self.daemon.returncode}")


def main():
    arguments = parse_arguments()
    words = sample_of(arguments.a, arguments.b)
    if not words:
        sys.exit("the models have no words in common")
    beside = os.path.dirname(os.path.abspath(arguments.a))
    with tempfile.TemporaryDirectory(prefix="gloved-reload-", dir=beside) as work:
        run = Run(arguments, work, words)
        try:
            run.connect()
            run.learn()
            seconds, memory, after = run.reload(arguments.reloads)
            engine = stats(run.control)[b"engine"].decode()
        finally:
            run.end()
    faults = run.faults
    for name, before, now in zip(("own memory", "device memory"), memory, after):
        if before is not None and now > before * GROWTH + SLACK[name]:
            faults.append(f"{name} grew from {before} to {now}")
    for fault in faults[:10]:
        print(fault, file=sys.stderr)
    print(
        f"engine {engine}: {arguments.reloads} reloads in {seconds:.1f} s, {sum(run.counts)}"
        f" queries meanwhile, {len(faults)} faults; own memory {memory[0] >> 20} ->"
        f" {after[0] >> 20} MiB, device {memory[1]} -> {after[1]} MiB"
    )
    return 1 if faults else 0


sys.exit(main())
