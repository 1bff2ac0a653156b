#!/usr/bin/env python3
"""Times gloved-neighbors beside NumPy and Faiss, on this machine's processors.

    neighbors_beside.py BIN_DIR MODEL_DIR [--words N] [--k K] [--batch B]

gloved-neighbors computes the neighbours of all words, in a directory beside the model that has
links to its files and is removed in the end. NumPy multiplies B words at a time with all rows, in
float32, and takes the K best by argpartition; Faiss searches an IndexFlatIP for K + 1. Both answer
N words, and their times are extrapolated to all.
Rows are normalised before. Prints a line for each, and for how many words it has gloved's lists:
float32 orders near ties otherwise. Without Faiss its line says so.
"""
import argparse
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

# Of a section table's entry (FORMAT.md): name, offset, size.
ENTRY = struct.Struct("<24s4x4xQQ16x")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Times gloved-neighbors beside NumPy and Faiss.",
        epilog="example: neighbors_beside.py build/dev/bin models/glove",
    )
    parser.add_argument("bin_dir")
    parser.add_argument("model_dir")
    parser.add_argument(
        "--words", type=int, default=20000, help="words that NumPy and Faiss answer"
    )
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--batch", type=int, default=256)
    return parser.parse_args()


def read_rows(model_dir):
    """The model's vectors, normalised: shape (rows, dim), float32."""
    with open(os.path.join(model_dir, "values"), "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rows, dim, sections = struct.unpack_from("<QII", content, 16)
    for number in range(sections):
        name, offset, _ = ENTRY.unpack_from(content, 64 + number * ENTRY.size)
        if name.rstrip(b"\0") == b"vectors":
            break
    values = np.frombuffer(content, "<f4", rows * dim, offset).reshape(rows, dim)
    norms = np.linalg.norm(values.astype(np.float64), axis=1, keepdims=True)
    return (values / np.where(norms > 0, norms, 1)).astype(np.float32)


def by_numpy(rows, numbers, k, batch):
    lists = np.empty((len(numbers), k), np.int64)
    for begin in range(0, len(numbers), batch):
        asked = numbers[begin : begin + batch]
        scores = rows[asked] @ rows.T
        scores[np.arange(len(asked)), asked] = -np.inf
        best = np.argpartition(scores, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
        lists[begin : begin + len(asked)] = np.take_along_axis(best, order, 1)
    return lists


def by_faiss(faiss, rows, numbers, k):
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    _, found = index.search(rows[numbers], k + 1)
    # Without the word itself, or, where a double comes before it, without the last.
    others = found != numbers[:, None]
    others[others.all(axis=1), -1] = False
    return found[others].reshape(len(numbers), k)


def by_gloved(bin_dir, model_dir, k):
    """Returns the lists of all words and the seconds that the whole command took."""
    model_dir = os.path.realpath(model_dir)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(model_dir)) as scratch:
        model = os.path.join(scratch, "model")
        os.mkdir(model)
        for name in os.listdir(model_dir):
            if name != "neighbors":
                os.link(os.path.join(model_dir, name), os.path.join(model, name))
        program = os.path.join(bin_dir, "gloved-neighbors")
        command = [program, "--engine", "cpu", "--k", str(k)]
        begun = time.perf_counter()
        subprocess.run([*command, model], check=True, stderr=sys.stderr)
        seconds = time.perf_counter() - begun
        output = os.path.join(scratch, "lists.npy")
        subprocess.run([*command, "--output", output, model], check=True, stderr=subprocess.DEVNULL)
        return np.load(output), seconds


def say(name, seconds, words, rows, agreeing=None):
    line = f"{name:<40} {words:>9} words {seconds:8.2f} s, all {seconds * rows / words:8.1f} s"
    if agreeing is not None:
        line += f", same lists {agreeing} ({agreeing / words:.2%})"
    print(line, flush=True)


def main():
    arguments = parse_arguments()
    k = arguments.k
    rows = read_rows(arguments.model_dir)
    count = len(rows)
    numbers = np.random.default_rng(1).choice(count, min(arguments.words, count), replace=False)
    lists, seconds = by_gloved(arguments.bin_dir, arguments.model_dir, k)
    say("gloved-neighbors, whole command", seconds, count, count)

    def time_peer(name, search):
        begun = time.perf_counter()
        found = search()
        seconds = time.perf_counter() - begun
        agreeing = int((np.asarray(found) == lists[numbers]).all(axis=1).sum())
        say(name, seconds, len(numbers), count, agreeing)

    time_peer(
        f"numpy {np.__version__}, matmul and argpartition",
        lambda: by_numpy(rows, numbers, k, arguments.batch),
    )
    try:
        import faiss
    except ImportError as error:
        print(f"Faiss: {error}")
        return
    time_peer(
        f"Faiss {faiss.__version__}, IndexFlatIP", lambda: by_faiss(faiss, rows, numbers, k)
    )


if __name__ == "__main__":
    main()
