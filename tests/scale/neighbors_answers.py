#!/usr/bin/python3
"""Compares the answers from a model's neighbors file with those of the engine, byte by byte.

    neighbors_answers.py BIN_DIR MODEL [--words N] [--k K,K,…]

Two daemons serve MODEL, one of them with --neighbors off. Both are asked, many requests at a time,
for the neighbours of all words, or of N random ones; once for each K (1,10), as text and as JSON.
The hits must be the same bytes, and all answers of the first daemon but errors must come from the
file.

Prints the answers that were compared and those that differ.
Exit status: 0 all of it held, 1 something did not.
"""
import argparse
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

PIPELINE = 64
PATIENCE_S = 60
MAX_SHOWN_FAULTS = 10
HITS = b'"results":'


class Daemon:
    """A daemon and a connection to it."""

    def __init__(self, binaries, model, path, *options):
        command = [binaries / "gloved", "--model", model, "--socket", path, "--pin", "off"]
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        begun = time.monotonic()
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(str(path))
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > begun + PATIENCE_S:
                    self.end()
                    sys.exit(f"gloved does not serve {model}")
                time.sleep(0.05)
        self.replies = self.socket.makefile("rb")

    def end(self):
        self.process.terminate()
        self.process.wait()

    def send(self, requests):
        self.socket.sendall(b"".join(request + b"\n" for request in requests))

    def read(self, form):
        """A status line or JSON object, and what must be the same in both daemons' answers."""
        status = self.replies.readline()
        if not status:
            sys.exit("gloved closed the connection")
        if form == "json":
            return status, status[status.find(HITS) :] if HITS in status else status
        count = re.match(rb"OK (\d+)", status)
        if count is None:
            return status, status
        return status, b"".join(self.replies.readline() for _ in range(int(count[1])))


def quoted(word):
    return b'"' + word.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def compare(stored, engine, words, k, form):
    """Returns descriptions of the answers that differ or do not come from the file."""
    faults = []
    for daemon in (stored, engine):
        daemon.send([b"FORMAT " + form.encode()])
        daemon.read("json")
    for begin in range(0, len(words), PIPELINE):
        requests = [b"NEAR k=%d " % k + quoted(word) for word in words[begin : begin + PIPELINE]]
        stored.send(requests)
        engine.send(requests)
        for request in requests:
            status, hits = stored.read(form)
            other, wanted = engine.read(form)
            is_error = status.startswith((b"ERR", b'{"error"', b'{"ok":false'))
            from_file = b"engine=neighbors" in status or b'"engine":"neighbors"' in status
            if hits != wanted:
                faults.append(f"{request!r}: {status[:200]!r} instead of {other[:200]!r}")
            elif not is_error and not from_file:
                faults.append(f"{request!r}: not from the file: {status[:200]!r}")
    return faults


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--words", type=int, default=0, help="0: all")
    parser.add_argument("--k", default="1,10")
    arguments = parser.parse_args()
    words = (arguments.model / "keys").read_bytes().split(b"\n")[:-1]
    if 0 < arguments.words < len(words):
        words = random.Random(1).sample(words, arguments.words)
    failed = False
    with tempfile.TemporaryDirectory() as work:
        directory = pathlib.Path(work)
        stored = Daemon(arguments.bin, arguments.model, directory / "stored")
        try:
            engine = Daemon(arguments.bin, arguments.model, directory / "e", "--neighbors", "off")
            try:
                for k in map(int, arguments.k.split(",")):
                    for form in ("text", "json"):
                        faults = compare(stored, engine, words, k, form)
                        failed = failed or bool(faults)
                        counts = f"{len(words)} answers, {len(faults)} wrong"
                        print(f"k={k} {form}: {counts}", flush=True)
                        for fault in faults[:MAX_SHOWN_FAULTS]:
                            print(f"  {fault}")
            finally:
                engine.end()
        finally:
            stored.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
