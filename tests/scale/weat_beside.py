#!/usr/bin/env python3
"""Compares `python3 -m gloved weat` with numpy, for published tests on a download's vectors.

    weat_beside.py BIN_DIR GLOVE_TXT

GLOVE_TXT is GloVe's text, whose words are in lower case. Prints a row for each test of
python/tests/weat_words.py: the effect size in the paper, which is of GloVe 840B, that of gloved and
of numpy, how many words the vectors have, and p. Exit status 1 if gloved and numpy differ by more
than 1e-9. Needs Debian's python3-numpy.
"""
import json
import os
import subprocess
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "../../python")
sys.path[:0] = [os.path.join(PYTHON, "tests"), os.path.join(HERE, "../faults")]
import harness  # noqa: E402
from weat_words import PUBLISHED  # noqa: E402

TOLERANCE = 1e-9


def read_vectors(path, words):
    """The unit vectors of those words that the text has, from its float32 numbers."""
    vectors = {}
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            word, numbers = line.rstrip("\n").split(" ", 1)
            if word in words and word not in vectors:
                vector = numpy.array(numbers.split(" "), dtype=numpy.float32).astype(float)
                vectors[word] = vector / numpy.linalg.norm(vector)
    return vectors


def effect_size(x, y, a, b):
    """That of four matrices with a unit vector in each row."""
    of_x, of_y = ((of @ a.T).mean(axis=1) - (of @ b.T).mean(axis=1) for of in (x, y))
    return (of_x.mean() - of_y.mean()) / numpy.concatenate([of_x, of_y]).std(ddof=1)


def ask(socket, sets):
    """What gloved prints, as JSON."""
    options = [word for name, words in sets.items() for word in (f"--{name}", *words)]
    done = subprocess.run(
        [sys.executable, "-m", "gloved", "weat", "--socket", socket, "--unknown", "skip",
         "--format", "json", *options],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=dict(os.environ, PYTHONPATH=PYTHON),
    )  # fmt: skip
    return json.loads(done.stdout)["results"][0]


@harness.program(harness.option("text", None, "GloVe's text", type=harness.existing))
def weat_beside(arguments, verdicts):
    sets = [words for test in PUBLISHED.values() for words in test.sets.values()]
    vectors = read_vectors(arguments.text, {word for words in sets for word in words})
    model = harness.convert(arguments.bin, arguments.text, os.path.join(arguments.work, "model"))
    with harness.Service(arguments.bin, arguments.work, model) as daemon:
        for name, test in PUBLISHED.items():
            answer = ask(daemon.path, test.sets)
            known = {
                each: [word for word in words if word in vectors]
                for each, words in test.sets.items()
            }
            expected = effect_size(
                *(numpy.array([vectors[word] for word in words]) for words in known.values())
            )
            difference = abs(answer["effect_size"] - expected)
            same_words = all(answer[each] == len(words) for each, words in known.items())
            verdicts.judge(
                name,
                same_words and difference <= TOLERANCE,
                f"paper {test.effect_size:.2f}, gloved {answer['effect_size']:.10f}, numpy"
                f" {expected:.10f}, difference {difference:.1e}, p {answer['p']:.2g}, words "
                + " ".join(f"{len(words)}/{len(test.sets[each])}" for each, words in known.items()),
            )
