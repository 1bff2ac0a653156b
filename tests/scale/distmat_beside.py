#!/usr/bin/env python3
"""Compares gloved-distmat with NumPy's float64, and times it beside SciPy's cdist.

    distmat_beside.py BIN_DIR [--rows M] [--dim N] [--repeat R]

For each metric, on float32 and float64 points (with a common offset of a million, except for
cosine), it prints two errors: the largest relative error of random pairs, and the largest absolute
error between each row and a slightly moved copy. Exit status 1 if an error exceeds the bound of
kernels/distance/canonical.hpp, a distance to itself is not 0, or the matrix is not symmetric to the
bit. SciPy gets float64, in which it computes. Needs numpy and scipy.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy
from scipy.spatial.distance import cdist

UNIT = 2.0**-24
PAIRS = 100_000


def positive(text):
    number = int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"{text} is not at least 2")
    return number


def parse_arguments():
    parser = argparse.ArgumentParser(description="gloved-distmat beside NumPy and SciPy.")
    parser.add_argument("programs", type=pathlib.Path, metavar="BIN_DIR")
    parser.add_argument("--rows", type=positive, default=4096)
    parser.add_argument("--dim", type=positive, default=300)
    parser.add_argument("--repeat", type=positive, default=5)
    return parser.parse_args()


def points(rows, dim):
    """Points whose second half is the first half, moved by a millionth of its length."""
    random = numpy.random.default_rng(1)
    half = random.standard_normal((rows // 2, dim))
    return numpy.concatenate([half, half * (1 + 1e-6 * random.standard_normal(half.shape))])


def computing_ms(program, metric, source, target):
    done = subprocess.run(
        [program, "--times", "--metric", metric, source, target],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"distmat_beside.py: {done.stderr}")
    return (
        float(re.search(r"computing ([0-9.]+) ms", done.stderr)[1]),
        done.stderr.split("\n")[0].split("; ")[1],
    )


def true_distances(values, metric, i, j):
    x, y = values[i].astype("float64"), values[j].astype("float64")
    if metric == "cosine":
        x, y = (v / numpy.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    squares = ((x - y) ** 2).sum(axis=1)
    return {"sqeuclidean": squares, "euclidean": numpy.sqrt(squares), "cosine": squares / 2}[metric]


def allowed(values, metric, truth):
    """What canonical.hpp allows: a relative part, and one for rounding the points, in the size of a
    squared distance or its root."""
    dim = values.shape[1]
    relative = (min(dim, 512) + -(-dim // 512) + 3) * UNIT
    if metric == "cosine":
        return relative * truth + 1.01 * (2 * UNIT * numpy.sqrt(2 * truth) + 2 * UNIT**2)
    moved = 0.0
    if values.dtype == numpy.float64:
        # The length of a row from the mean row, and what float64 itself has lost at the offset.
        far = numpy.linalg.norm(values - values.mean(axis=0), axis=1).max()
        moved = 1.01 * 2 * UNIT * far + numpy.sqrt(dim) * 2.0**-52 * numpy.abs(values).max()
    if metric == "euclidean":
        return relative * truth + moved
    return relative * truth + 2 * numpy.sqrt(truth) * moved + moved**2


def compare(values, metric, found, name):
    half = len(values) // 2
    random = numpy.random.default_rng(2)
    drawn = random.integers(0, len(values), (2, PAIRS))
    drawn = drawn[:, drawn[0] % half != drawn[1] % half]
    near = numpy.stack([numpy.arange(half), numpy.arange(half) + half])
    figures = []
    sound = True
    for what, (i, j) in (("random", drawn), ("near", near)):
        truth = true_distances(values, metric, i, j)
        error = numpy.abs(found[i, j].astype("float64") - truth)
        if not (error <= allowed(values, metric, truth)).all():
            sound = False
        worst = (
            f"{(error / truth).max():.1e} of it"
            if what == "random"
            else f"{error.max():.1e} of {truth.max():.1e}"
        )
        figures.append(f"{what} pairs {worst}")
    if not (numpy.array_equal(found, found.T) and not numpy.diagonal(found).any()):
        sound = False
        figures.append("not symmetric, or not 0 on its diagonal")
    print(
        f"{name:8} {metric:12} largest error: {', '.join(figures)}{'' if sound else '  TOO LARGE'}",
        flush=True,
    )
    return sound


def main():
    arguments = parse_arguments()
    program = str(arguments.programs / "gloved-distmat")
    base = points(arguments.rows, arguments.dim)
    sound = True
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/points.npy", f"{folder}/distances.npy"
        for name, offset in (("float32", 0), ("float64", 1e6)):
            for metric in ("sqeuclidean", "euclidean", "cosine"):
                values = (base + (0 if metric == "cosine" else offset)).astype(name)
                numpy.save(source, values)
                computing_ms(program, metric, source, target)
                sound &= compare(values, metric, numpy.load(target), name)

        values = base.astype("float32")
        numpy.save(source, values)
        ours, theirs = [], []
        for _ in range(arguments.repeat):
            begun = time.perf_counter()
            cdist(base, base, "sqeuclidean")
            theirs.append(1e3 * (time.perf_counter() - begun))
            ms, engine = computing_ms(program, "sqeuclidean", source, target)
            ours.append(ms)
        operations = 1.5e-6 * arguments.rows**2 * arguments.dim / min(ours)
        print(
            f"{arguments.rows} x {arguments.dim}, least of {arguments.repeat}:"
            f" {engine} {min(ours):.1f} ms ({operations:.0f} GFLOP/s, of one half), scipy's cdist"
            f" {min(theirs):.1f} ms: {min(theirs) / min(ours):.1f} times as long"
        )
    sys.exit(0 if sound else 1)


main()
