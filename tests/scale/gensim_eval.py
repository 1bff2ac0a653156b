#!/usr/bin/env python3
"""Compares figures of gloved-eval with gensim's evaluate_word_analogies and evaluate_word_pairs.

    gensim_eval.py BIN_DIR SOCKET VECTORS (analogies|pairs) FILE [TOP ...]

The daemon at SOCKET serves the model of VECTORS, GloVe's text. Each TOP (300000) is gensim's
restrict_vocab. The counts of each section must be equal. gensim computes in float32, so a section
may differ by questions whose two best words are closer than that; then the difference is small.
Correlations may differ by 1e-6. Exit status 1 on any difference. Needs Debian's python3-gensim.
gensim takes three minutes for the 19,544 questions of word2vec with 100 numbers a word.
"""
import json
import subprocess
import sys
import time

from gensim.models import KeyedVectors

TOLERANCE = 1e-6


def gloved(bin_dir, socket, kind, path, top):
    command = [
        f"{bin_dir}/gloved-eval",
        "--socket",
        socket,
        "--json",
        "--top",
        str(top),
        kind,
        path,
    ]
    begun = time.monotonic()
    figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures, time.monotonic() - begun


def compare_analogies(vectors, figures, path, top):
    _, sections = vectors.evaluate_word_analogies(path, restrict_vocab=top)
    ours = [(s["section"], s["correct"], s["asked"]) for s in figures["sections"]]
    ours.append(("Total accuracy", figures["total"]["correct"], figures["total"]["asked"]))
    theirs = [
        (s["section"], len(s["correct"]), len(s["correct"]) + len(s["incorrect"])) for s in sections
    ]
    for our, their in zip(ours, theirs):
        print("same  " if our == their else "DIFFER", *our, *(their[1:] if our != their else ()))
    return ours == theirs


def compare_pairs(vectors, figures, path, top):
    pearson, spearman, skipped_percent = vectors.evaluate_word_pairs(path, restrict_vocab=top)
    same = True
    for name, theirs in (
        ("pearson", pearson[0]),
        ("spearman", spearman[0]),
        ("skipped_percent", skipped_percent),
    ):
        close = abs(figures[name] - theirs) <= TOLERANCE
        print("same  " if close else "DIFFER", name, figures[name], theirs)
        same = same and close
    return same


def main():
    if len(sys.argv) < 6 or sys.argv[4] not in ("analogies", "pairs"):
        sys.exit(__doc__)
    bin_dir, socket, source, kind, path = sys.argv[1:6]
    vectors = KeyedVectors.load_word2vec_format(source, no_header=True)
    compare = compare_analogies if kind == "analogies" else compare_pairs
    same = True
    for top in map(int, sys.argv[6:] or ["300000"]):
        figures, ours_s = gloved(bin_dir, socket, kind, path, top)
        begun = time.monotonic()
        same = compare(vectors, figures, path, top) and same
        print(f"top {top}: gloved-eval {ours_s:.1f} s, gensim {time.monotonic() - begun:.1f} s")
    sys.exit(0 if same else 1)


main()
