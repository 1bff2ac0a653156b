#!/usr/bin/env python3
"""Exports a model in each format, loads it with gensim and NumPy, and compares words and bits.

    export_round_trip.py GLOVED_CONVERT MODEL_DIR [SCRATCH_DIR]

This script reads the model's files itself (common/format/FORMAT.md). gensim cannot load keys with
blanks, so it gets a model without them; keys of invalid UTF-8 are compared as gensim decodes them.
Both are printed. Exit status 1 on any difference. Needs Debian's python3-numpy and python3-gensim,
and room for three copies of the model.
"""
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
from gensim.models import KeyedVectors

HEADER_BYTES = 4096


def read_model(directory):
    """Keys and float32 values in the order of ranks."""
    with open(os.path.join(directory, "keys"), "rb") as file:
        keys = file.read().split(b"\n")[:-1]
    path = os.path.join(directory, "values")
    with open(path, "rb") as file:
        header = file.read(HEADER_BYTES)
    rows, dim, count = struct.unpack_from("<QII", header, 16)
    sections = {}
    for entry in range(64, 64 + 64 * count, 64):
        sections[header[entry : entry + 24].rstrip(b"\0")] = struct.unpack_from(
            "<Q", header, entry + 32
        )[0]
    vectors = np.memmap(path, "<f4", "r", sections[b"vectors"], (rows, dim))
    ranks = np.memmap(path, "<u4", "r", sections[b"ranks"], (rows,))
    order = np.argsort(ranks)
    return [keys[row] for row in order], vectors[order]


def same_bits(a, b):
    return a.shape == b.shape and np.array_equal(
        np.ascontiguousarray(a).view("<u4"), np.ascontiguousarray(b).view("<u4")
    )


class Comparison:
    def __init__(self):
        self.failed = False

    def note(self, what, ok, detail):
        print(f"{'ok    ' if ok else 'FAILED'}  {what}: {detail}")
        self.failed = self.failed or not ok

    def gensim(self, what, path, keys, values, **how):
        loaded = KeyedVectors.load_word2vec_format(path, unicode_errors="replace", **how)
        # gensim keeps the first of several words that decode alike.
        wanted = {}
        for index, key in enumerate(keys):
            wanted.setdefault(key.decode("utf-8", "replace"), index)
        alike = len(keys) - len(wanted)
        # Where gensim has left words out, its list is filled up with others than words.
        if loaded.index_to_key[: len(loaded.key_to_index)] != list(wanted):
            return self.note(what, False, "other words, or in another order")
        differing = [
            i
            for i, row in enumerate(wanted.values())
            if not same_bits(loaded.vectors[i], values[row])
        ]
        left_out = f"; {alike} words decode like another, which gensim leaves out" if alike else ""
        self.note(
            what,
            not differing,
            (
                f"{len(differing)} rows differ"
                if differing
                else f"{len(wanted)} words and their numbers, bit for bit{left_out}"
            ),
        )


def export(convert, form, source, path, comparison):
    run = subprocess.run(
        [convert, "--export", form, source, path], stderr=subprocess.PIPE, text=True, check=False
    )
    print("".join(f"        {line}\n" for line in run.stderr.splitlines()), end="")
    if run.returncode != 0:
        comparison.note(form, False, f"exit status {run.returncode}")
    return run.returncode == 0


def compare_npy(path, keys, values, comparison):
    array = np.load(path)
    same = same_bits(array, values)
    right = array.dtype == np.dtype("<f4") and array.flags.c_contiguous and same
    figure = f"numpy.load gives {array.shape} {array.dtype}, {'' if same else 'NOT '}the bits"
    comparison.note("npy", right, figure)
    with open(path + ".words", "rb") as file:
        words = file.read().split(b"\n")
    comparison.note("npy words", words == keys + [b""], f"{len(words) - 1} words")
    os.remove(path)
    os.remove(path + ".words")


def without_blanks(convert, scratch, keys, values, plain):
    """Converts the keys without blanks; returns the model."""
    text = os.path.join(scratch, "plain.txt")
    with open(text, "wb") as file:
        for index in plain:
            # repr of a float64 that holds a float32 reads back as that float32.
            numbers = [repr(float(value)).encode() for value in values[index]]
            file.write(b" ".join([keys[index], *numbers]) + b"\n")
    model = os.path.join(scratch, "plain")
    command = [convert, "--dim", str(values.shape[1]), "--format", "glove", text, model]
    subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
    os.remove(text)
    return model


def is_utf8(key):
    try:
        key.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    convert, model = sys.argv[1:3]
    keys, values = read_model(model)
    comparison = Comparison()
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) == 4 else None) as scratch:
        out = os.path.join(scratch, "out")
        if export(convert, "npy", model, out, comparison):
            compare_npy(out, keys, values, comparison)

        plain = [index for index, key in enumerate(keys) if b" " not in key]
        if len(plain) != len(keys):
            blanks = len(keys) - len(plain)
            print(f"exempt  {blanks} keys have blanks: gensim gets the {len(plain)} others")
            if not plain:
                sys.exit(comparison.failed)
            model = without_blanks(convert, scratch, keys, values, plain)
            keys, values = [keys[index] for index in plain], values[plain]
        invalid = sum(not is_utf8(key) for key in keys)
        if invalid:
            print(
                f"exempt  {invalid} keys are invalid UTF-8: compared as gensim decodes them, with"
                " unicode_errors='replace'"
            )
        for form, how in (
            ("glove", {"binary": False, "no_header": True}),
            ("word2vec", {"binary": False}),
            ("word2vec-bin", {"binary": True}),
        ):
            if export(convert, form, model, out, comparison):
                comparison.gensim(f"{form} in gensim", out, keys, values, **how)
                os.remove(out)
    sys.exit(comparison.failed)


if __name__ == "__main__":
    main()
