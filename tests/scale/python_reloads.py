#!/usr/bin/python3
"""Makes every call of the Python client that asks several requests, while models are replaced.

    python_reloads.py BIN_DIR [--seconds S] [--threads T]

A daemon serves a model of 300 words. Another model of the same words, with other vectors and other
ranks, takes its place again and again by renaming and RELOAD, with pauses of up to 30 ms. T (2)
threads make all calls of python/tests/calls.py for S (60) seconds. Each result must be the one of
one of the models, or the call must end with ModelReplaced.

Prints the calls, by result. Exit status: 0 all of it held, 1 something did not.
"""
import argparse
import collections
import logging
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "python"), str(REPOSITORY / "python" / "tests")]

import gloved  # noqa: E402
from calls import Swap, all_calls, plain, text_of_model  # noqa: E402

MAX_SHOWN_FAULTS = 10
START_S = 30
MAX_PAUSE_S = 0.03


def convert(bin_dir, work, seed):
    """A model in a directory of its own."""
    text = work / f"text{seed}"
    text.write_bytes(text_of_model(seed))
    model = work / f"model{seed}"
    subprocess.run(
        [bin_dir / "gloved-convert", text, model], check=True, stderr=subprocess.DEVNULL
    )
    return model


def wait_for(daemon, socket):
    """Returns once the daemon answers."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            with gloved.Client(socket, retries=0) as client:
                return client.ping()
        except gloved.GlovedError:
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class Run:
    """The calls of all threads, and what came of them."""

    def __init__(self, socket, swap, folder):
        self.socket = socket
        self.swap = swap
        self.calls = all_calls(folder)
        self.outcomes = collections.Counter()
        self.faults = []
        self.reloads = 0
        self.ends = threading.Event()
        self.right = collections.defaultdict(list)

    def find_right_results(self):
        """The results of each call for both models, while nothing is replaced."""
        for _ in range(2):
            with gloved.connect(self.socket) as vectors:
                for name, call in self.calls.items():
                    self.right[name].append(plain(call(vectors.client, vectors)))
                self.replace(vectors.client)

    def replace(self, client):
        """Puts the other model in place."""
        self.swap.swap()
        client.reload()

    def replace_again_and_again(self):
        pick = random.Random(1)
        with gloved.Client(self.socket) as client:
            while not self.ends.is_set():
                self.replace(client)
                self.reloads += 1
                time.sleep(pick.uniform(0, MAX_PAUSE_S))

    def make_calls(self, seed):
        pick = random.Random(seed)
        with gloved.connect(self.socket) as vectors:
            while not self.ends.is_set():
                name = pick.choice(list(self.calls))
                begun = []
                try:
                    found = self.calls[name](vectors.client, vectors)
                    if hasattr(found, "__next__"):
                        begun.extend(found)
                        found = begun
                    outcome = plain(found) in self.right[name]
                except gloved.ModelReplaced:
                    # What an iterator gave before is of one model too.
                    self.outcomes["replaced too often"] += 1
                    outcome = any(
                        not begun or each[: len(begun)] == plain(begun)
                        for each in self.right[name]
                    )
                except Exception as error:
                    self.faults.append(f"{name}: {error!r}")
                    continue
                if isinstance(found, dict) and "replaced 3 times" in str(found.get("error")):
                    self.outcomes["replaced too often"] += 1
                elif not outcome:
                    self.faults.append(f"{name}: a result of neither model")
                self.outcomes["calls"] += 1

    def run(self, seconds, threads):
        """Runs for so long. True: all of it held."""
        self.find_right_results()
        working = [threading.Thread(target=self.replace_again_and_again)]
        working += [threading.Thread(target=self.make_calls, args=(seed,))
                    for seed in range(threads)]
        for each in working:
            each.start()
        time.sleep(seconds)
        self.ends.set()
        for each in working:
            each.join()
        print(f"{self.outcomes['calls']:9,} calls of {len(self.calls)} kinds")
        print(f"{self.outcomes['replaced too often']:9,} ended with ModelReplaced")
        print(f"{self.reloads:9,} reloads")
        print(f"{len(self.faults):9,} faults")
        for fault in self.faults[:MAX_SHOWN_FAULTS]:
            print(fault)
        return not self.faults and self.outcomes["calls"] > 0 and self.reloads > 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="gloved-reloads-") as name:
        work = pathlib.Path(name)
        models = [convert(arguments.bin_dir, work, seed) for seed in (1, 2)]
        socket = str(work / "gloved.sock")
        daemon = subprocess.Popen(
            [arguments.bin_dir / "gloved", "--model", f"live={models[0]}", "--socket", socket],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(daemon, socket)
            held = Run(socket, Swap(*models), work).run(arguments.seconds, arguments.threads)
        finally:
            daemon.terminate()
            daemon.wait()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
