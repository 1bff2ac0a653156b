#!/usr/bin/env python3
"""Loads a model anew again and again while clients ask it, and another model of the same daemon is
asked too.

    reload.py BIN_DIR MODEL_A MODEL_B [--reloads N] [--clients N] [--engine NAME]

A and B stand in for each other under one name: before each of N (10) RELOADs their directories are
exchanged. Every answer must be one of A or one of B, as the generation in its status line says,
line by line what the cpu engine gave for that model at the start; none may fail. At the end the
daemon's own memory and, on a GPU, the device's must be what they were after the first two. The
models are copied (hard links where the file system has them), so they stay as they are.

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
# Bytes, and MiB: what allocators keep.
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
        """The status line's fields (or the ERR line under the key ERR), and the lines."""
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
    """MiB in use on all devices; nothing where there are none."""
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
    """Words that all models have, evenly from the keys of the first."""
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--reloads", type=int, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--engine", default="auto")
    arguments = parser.parse_args()
    words = sample_of(arguments.a, arguments.b)
    if not words:
        sys.exit("the models have no words in common")
    faults = []
    counts = [0] * (arguments.clients + 1)
    stop = threading.Event()
    with tempfile.TemporaryDirectory(
        prefix="gloved-reload-", dir=os.path.dirname(os.path.abspath(arguments.a))
    ) as work:
        live, spare, path = (os.path.join(work, name) for name in ("live", "spare", "s"))
        link_tree(arguments.a, live)
        link_tree(arguments.b, spare)
        command = [
            arguments.bin / "gloved",
            "--model",
            f"live={live}",
            "--model",
            f"still={arguments.a}",
            "--socket",
            path,
        ]
        daemon = subprocess.Popen(
            [*command, "--engine", arguments.engine, "--pin", "off"], stderr=subprocess.DEVNULL
        )
        try:
            begun = time.monotonic()
            while time.monotonic() < begun + PATIENCE_S:
                try:
                    control = Connection(path)
                    control.ask(b"PING")
                    break
                except OSError:
                    time.sleep(0.05)

            def exchange():
                os.rename(live, live + ".aside")
                os.rename(spare, live)
                os.rename(live + ".aside", spare)
                fields, lines = control.ask(b"RELOAD live")
                if b"ERR" in fields or len(lines) != 1:
                    faults.append(f"RELOAD: {fields}")

            def known():
                answers = {}
                for word in words:
                    fields, lines = control.ask(b"NEAR k=5 engine=cpu " + quoted(word))
                    answers[word] = lines
                return fields[b"generation"], answers

            of = dict([known()])
            exchange()
            of.update([known()])
            still = control.ask(b"USE still")[0][b"generation"]

            def client(number):
                connection = Connection(path)
                chance = random.Random(number)
                # The last one asks the model that is left alone.
                model = b"still" if number == arguments.clients else b"live"
                while not stop.is_set():
                    word = chance.choice(words)
                    fields, lines = connection.ask(b"NEAR k=5 model=" + model + b" " + quoted(word))
                    counts[number] += 1
                    if b"ERR" in fields or lines != of[fields[b"generation"]][word]:
                        faults.append(f"{model}: {word} {fields} {lines}")
                    elif model == b"still" and fields[b"generation"] != still:
                        faults.append(f"another generation of the model left alone: {fields}")

            def settled():
                """Own memory and the device's, when what was replaced is gone."""
                begun = time.monotonic()
                while (
                    stats(control)[b"retired_models"] != b"0"
                    and time.monotonic() < begun + PATIENCE_S
                ):
                    time.sleep(0.05)
                time.sleep(1)
                return int(stats(control)[b"own_memory_bytes"]), device_memory()

            threads = [
                threading.Thread(target=client, args=(number,))
                for number in range(arguments.clients + 1)
            ]
            for thread in threads:
                thread.start()
            exchange()
            memory = settled()
            begun = time.monotonic()
            for _ in range(arguments.reloads):
                exchange()
            seconds = time.monotonic() - begun
            # Two models take different room: it is the first one's that is compared.
            if arguments.reloads % 2:
                exchange()
            after = settled()
            stop.set()
            for thread in threads:
                thread.join()
            engine = stats(control)[b"engine"].decode()
        finally:
            stop.set()
            daemon.terminate()
            if daemon.wait(PATIENCE_S) != 0:
                faults.append(f"the daemon ended with {daemon.returncode}")
    for name, before, now in zip(("own memory", "device memory"), memory, after):
        if before is not None and now > before * GROWTH + SLACK[name]:
            faults.append(f"{name} grew from {before} to {now}")
    for fault in faults[:10]:
        print(fault, file=sys.stderr)
    print(
        f"engine {engine}: {arguments.reloads} reloads in {seconds:.1f} s, {sum(counts)} queries"
        f" meanwhile, {len(faults)} faults; own memory {memory[0] >> 20} -> {after[0] >> 20} MiB,"
        f" device {memory[1]} -> {after[1]} MiB"
    )
    return 1 if faults else 0


sys.exit(main())
