#!/usr/bin/env python3
"""Compares a running gloved with a float64 brute force that reads the GloVe text itself.

    brute_force.py GLOVE_TEXT SOCKET [WORDS [ANALOGIES]]

Asks for the 10 nearest of random words and random analogies b - a + c, and computes the same with
NumPy in float64. Words and order must be equal, except for neighbours whose scores differ by less
than 1e-12. Scores must agree in the 6 printed decimals, within half a unit of the last and 1e-12.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402

TIE = 1e-12
K = 10


def read_glove(path):
    words, rows = [], []
    with open(path, "rb") as file:
        for line in file:
            fields = line.rstrip(b"\n").split(b" ")
            words.append(fields[0])
            # To float32 as the model stores it; float() is correctly rounded, and a double rounding
            # is looked for below.
            rows.append(np.array(fields[1:], dtype=np.float64).astype(np.float32))
    return words, np.stack(rows).astype(np.float64)


def near(connection, expression):
    """Words and scores."""
    reply = connection.ask(b"NEAR k=%d exclude=none " % K + expression)
    return [(word, float(score)) for word, score in harness.lines_of(reply)]


def main():
    text, socket_path = sys.argv[1:3]
    word_count = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    analogy_count = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
    words, rows = read_glove(text)
    position = {word: i for i, word in enumerate(words)}
    norms = np.sqrt((rows * rows).sum(axis=1))
    connection = harness.Connection(socket_path)
    random = np.random.default_rng(20)
    queries = [[(1, int(i))] for i in random.integers(len(words), size=word_count)]
    queries += [
        [(1, int(b)), (-1, int(a)), (1, int(c))]
        for a, b, c in random.integers(len(words), size=(analogy_count, 3))
    ]
    swaps = 0
    for number, query in enumerate(queries):
        vector = np.zeros(rows.shape[1])
        for coefficient, i in query:
            vector += coefficient * rows[i]
        vector = vector.astype(np.float32).astype(np.float64)
        length = np.sqrt((vector * vector).sum())
        if length == 0:
            continue
        scores = rows @ vector / (norms * length)
        best = np.argpartition(-scores, K)[: K + 1]
        best = best[np.argsort(-scores[best])][:K]
        terms = ((b"- " if c < 0 else b"+ ") + harness.quoted(words[i]) for c, i in query)
        expression = b" ".join(terms)
        hits = near(connection, expression)
        if len(hits) != K:
            raise SystemExit(f"{expression!r}: {len(hits)} hits for {K}")
        for place, (word, score) in enumerate(hits):
            own = scores[position[word]]
            wanted = scores[best[place]]
            if not abs(own - score) <= 0.5e-6 + TIE:
                raise SystemExit(f"{expression!r}: {word!r} has {score}, brute force {own:.12f}")
            if word != words[best[place]]:
                swaps += 1
                if not abs(own - wanted) <= TIE:
                    raise SystemExit(
                        f"{expression!r}, place {place + 1}: {word!r} ({own:.15f}) for"
                        f" {words[best[place]]!r} ({wanted:.15f})"
                    )
        if number % 500 == 499:
            print(f"{number + 1} of {len(queries)} queries agree", file=sys.stderr)
    print(
        f"{word_count} words and {analogy_count} analogies on {len(words)} x {rows.shape[1]}: "
        f"words, order and scores agree; {swaps} ties within {TIE} stand in another order"
    )


main()
