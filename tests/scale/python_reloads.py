#!/usr/bin/python3
"""Makes every call of the Python client that asks several requests, while models are replaced.

    python_reloads.py BIN_DIR [--seconds S] [--threads T]

A daemon serves a model of 300 words. Another model of the same words, with other vectors and other
ranks, takes its place again and again by renaming and RELOAD, with pauses of up to 30 ms. T (2)
threads make all calls of python/tests/calls.py for S (60) seconds. Each result must be the one of
one of the models, or the call must end with ModelReplaced.

Exit status: 0 all of it held, 1 something did not, 2 wrong usage.
"""
import collections
import logging
import pathlib
import random
import sys
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / name) for name in ("python", "python/tests", "tests/faults")]

import gloved  # noqa: E402
import harness  # noqa: E402
from calls import Swap, all_calls, plain, text_of_model  # noqa: E402

MAX_PAUSE_S = 0.03


def convert(arguments, seed):
    """A model in a directory of its own."""
    text = pathlib.Path(arguments.work, f"text{seed}")
    text.write_bytes(text_of_model(seed))
    return pathlib.Path(harness.convert(arguments.bin, text, text.with_name(f"model{seed}")))


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


@harness.program(
    harness.option("--seconds", 60.0, "length of the run"),
    harness.option("--threads", 2, "threads that make calls"),
)
def main(arguments, verdicts):
    logging.disable(logging.WARNING)
    models = [convert(arguments, seed) for seed in (1, 2)]
    with harness.Service(arguments.bin, arguments.work, f"live={models[0]}") as daemon:
        run = Run(daemon.path, Swap(*models), pathlib.Path(arguments.work))
        run.run(arguments.seconds, arguments.threads)
    calls, ended = run.outcomes["calls"], run.outcomes["replaced too often"]
    verdicts.blame("calls", run.faults, f"{calls:,} of {len(run.calls)} kinds")
    verdicts.judge("reloads", calls > 0 and run.reloads > 0, f"{run.reloads:,}")
    return f"{ended:,} calls ended with ModelReplaced"
