#!/usr/bin/python3
"""Compares the answers from a model's neighbors file with those of the engine, byte by byte.

    neighbors_answers.py BIN_DIR MODEL [--words N] [--k K,K,…]

Two daemons serve MODEL, one of them with --neighbors off. Both are asked, many requests at a time,
for the neighbours of all words, or of N random ones; once for each K (1,10), as text and as JSON.
The hits must be the same bytes, and all answers of the first daemon but errors must come from the
file.

Exit status: 0 all of it held, 1 something did not, 2 wrong usage.
"""
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402

PIPELINE = 64
HITS = b'"results":'


def read(connection, form):
    """A status line or JSON object, and what must be the same in both daemons' answers."""
    reply = connection.reply()
    if form == "json":
        return reply, reply[reply.find(HITS) :] if HITS in reply else reply
    status, _, lines = reply.partition(b"\n")
    return status, lines if status.startswith(b"OK ") else status


def compare(stored, engine, words, k, form):
    """Returns descriptions of the answers that differ or do not come from the file."""
    faults = []
    for connection in (stored, engine):
        connection.ask(b"FORMAT " + form.encode())
    for begin in range(0, len(words), PIPELINE):
        some = words[begin : begin + PIPELINE]
        requests = [b"NEAR k=%d " % k + harness.quoted(word) for word in some]
        for connection in (stored, engine):
            connection.send(b"".join(request + b"\n" for request in requests))
        for request in requests:
            status, hits = read(stored, form)
            other, wanted = read(engine, form)
            is_error = status.startswith((b"ERR", b'{"error"', b'{"ok":false'))
            from_file = b"engine=neighbors" in status or b'"engine":"neighbors"' in status
            if hits != wanted:
                faults.append(f"{request!r}: {status[:200]!r} instead of {other[:200]!r}")
            elif not is_error and not from_file:
                faults.append(f"{request!r}: not from the file: {status[:200]!r}")
    return faults


@harness.program(
    harness.option("model", None, "directory made by gloved-convert", type=pathlib.Path),
    harness.option("--words", 0, "words that are asked for; 0: all"),
    harness.option("--k", "1,10", "neighbours of each"),
)
def main(arguments, verdicts):
    words = (arguments.model / "keys").read_bytes().split(b"\n")[:-1]
    if 0 < arguments.words < len(words):
        words = random.Random(1).sample(words, arguments.words)
    given = {"engine": None}
    daemons = [
        harness.Service(arguments.bin, tempfile.mkdtemp(dir=arguments.work), *options, **given)
        for options in (
            (arguments.model, "--pin", "off"),
            (arguments.model, "--pin", "off", "--neighbors", "off"),
        )
    ]
    with daemons[0], daemons[1]:
        stored, engine = (harness.Connection(daemon.path) for daemon in daemons)
        for k in map(int, arguments.k.split(",")):
            for form in ("text", "json"):
                faults = compare(stored, engine, words, k, form)
                verdicts.blame(f"k={k} {form}", faults, f"{len(words)} answers")
