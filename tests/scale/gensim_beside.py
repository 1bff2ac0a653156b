#!/usr/bin/env python3
"""Compares gloved with gensim on the same vectors, request by request.

    gensim_beside.py BIN_DIR|SOCKET VECTORS [--count N] [--seed S] [--only KIND]

VECTORS is GloVe's text. Given BIN_DIR, this converts it and serves it with gloved; given a socket,
the daemon there must serve it. N random cases (1,000) of each kind:

    near      NEAR norm=unit EXPR          most_similar(positive=…, negative=…), with weights
    analogy   ANALOGY method=mul a b c     most_similar_cosmul(positive=[b, c], negative=[a])
    odd       ODD w1 w2 …                  doesnt_match([w1, w2, …])
    rank      RANK a b                     rank(a, b)
    sim       SIM a b                      similarity(a, b)
    sets      SIM ( a b … ) ( c d … )      n_similarity([a, b, …], [c, d, …])

Words and order must be equal. gensim computes in float32, so words may change places if their
float64 scores are closer than 1e-6. A rank may differ by the number of rows that close,
similarities by 1e-6. Such differences are counted. Exit status 1 on any other. Needs Debian's
python3-gensim.
"""
import argparse
import contextlib
import os
import random
import stat
import sys
import tempfile
import time

import numpy as np
from gensim.models import KeyedVectors

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402

TIE = 1e-6
K = 10


@contextlib.contextmanager
def served(bin_or_socket, vectors):
    """The path of a socket where a daemon serves these vectors."""
    if stat.S_ISSOCK(os.stat(bin_or_socket).st_mode):
        yield bin_or_socket
        return
    with tempfile.TemporaryDirectory(prefix="gloved-gensim-") as work:
        model = harness.convert(bin_or_socket, vectors, os.path.join(work, "model"))
        with harness.Service(bin_or_socket, work, model, engine=None) as daemon:
            yield daemon.path


class Comparison:
    def __init__(self, vectors, path, seed):
        self.gensim = vectors
        self.connection = harness.Connection(path)
        self.seed = seed
        # In float64, to tell what is so close that float32 may see it otherwise.
        rows = vectors.vectors.astype(np.float64)
        norms = np.sqrt((rows * rows).sum(axis=1))
        self.units = rows / np.where(norms == 0, 1, norms)[:, None]
        self.failures = 0

    def ask(self, line):
        """The fields of each line of the reply."""
        lines = harness.lines_of(self.connection.ask(line))
        return [[field.decode() for field in line] for line in lines]

    def words(self, chance, least, most=None):
        """Different words: half of them from the frequent ones, since random rows have strange
        neighbours."""
        count = chance.randint(least, most or least)
        limit = chance.choice((5000, len(self.gensim.index_to_key)))
        return chance.sample(self.gensim.index_to_key[:limit], count)

    def row(self, word):
        return self.gensim.key_to_index[word]

    def complain(self, what, detail):
        self.failures += 1
        if self.failures <= 20:
            print(f"DISAGREE: {what}: {detail}", flush=True)

    def same_order(self, what, got, wanted, scores):
        """Whether two lists of words are one ranking, but for neighbours that `scores` cannot tell
        apart; how many are swapped."""
        if len(got) != len(wanted) or len(set(got)) != len(got):
            self.complain(what, f"{len(got)} words for {len(wanted)}")
            return 0
        swapped = 0
        for place, (own, other) in enumerate(zip(got, wanted)):
            if own != other:
                swapped += 1
                own_score, other_score = scores[self.row(own)], scores[self.row(other)]
                if not abs(own_score - other_score) <= TIE * max(1.0, abs(own_score)):
                    self.complain(
                        what,
                        (
                            f"place {place + 1}: {own!r} ({own_score:.9f}), gensim"
                            f" {other!r} ({other_score:.9f})"
                        ),
                    )
                    return 0
        return swapped

    def near(self, chance):
        words = self.words(chance, 1, 5)
        # The first is positive, so that there always is a direction; weights of one, or of two
        # decimals.
        signs = [1] + [chance.choice((1, -1)) for _ in words[1:]]
        weights = [
            sign * (1.0 if chance.randrange(2) else chance.randint(10, 300) / 100) for sign in signs
        ]
        terms = (
            b"%s %.2f * %s" % (b"-" if weight < 0 else b"+", abs(weight), harness.quoted(word))
            for weight, word in zip(weights, words)
        )
        expression = b" ".join(terms)
        answer = self.ask(b"NEAR norm=unit k=%d " % K + expression)
        positive = [(word, weight) for word, weight in zip(words, weights) if weight > 0]
        negative = [(word, weight) for word, weight in zip(words, weights) if weight < 0]
        wanted = self.gensim.most_similar(positive=positive, negative=negative, topn=K)
        query = sum(weight * self.units[self.row(word)] for word, weight in zip(words, weights))
        scores = self.units @ (query / np.sqrt(query @ query))
        swapped = self.same_order(
            expression.decode(), [word for word, _ in answer], [word for word, _ in wanted], scores
        )
        for word, score in answer:
            if not abs(float(score) - scores[self.row(word)]) <= TIE:
                self.complain(
                    expression.decode(), f"{word!r} has {score}, not {scores[self.row(word)]:.9f}"
                )
        return swapped

    def analogy(self, chance):
        a, b, c = self.words(chance, 3)
        words = b" ".join(map(harness.quoted, (a, b, c)))
        answer = self.ask(b"ANALOGY method=mul k=%d " % K + words)
        wanted = self.gensim.most_similar_cosmul(positive=[b, c], negative=[a], topn=K)
        shifted = {word: (1 + self.units @ self.units[self.row(word)]) / 2 for word in (a, b, c)}
        scores = shifted[b] * shifted[c] / (shifted[a] + 1e-6)
        return self.same_order(
            f"{a} : {b} :: {c}", [word for word, _ in answer], [word for word, _ in wanted], scores
        )

    def odd(self, chance):
        words = self.words(chance, 3, 8)
        ((own, _),) = self.ask(b"ODD " + b" ".join(map(harness.quoted, words)))
        other = self.gensim.doesnt_match(words)
        if own == other:
            return 0
        units = self.units[[self.row(word) for word in words]]
        total = units.sum(axis=0)
        scores = dict(zip(words, units @ (total / np.sqrt(total @ total))))
        if not abs(scores[own] - scores[other]) <= TIE:
            self.complain(
                f"odd of {words}",
                f"{own!r} ({scores[own]:.9f}), gensim {other!r} ({scores[other]:.9f})",
            )
            return 0
        return 1

    def rank(self, chance):
        a, b = self.words(chance, 2)
        if chance.randrange(2):
            # One that is near: far away so many rows are close to each score that ranks say little.
            b = self.gensim.most_similar(a, topn=500)[chance.randrange(500)][0]
        ((own,),) = self.ask(b"RANK " + harness.quoted(a) + b" " + harness.quoted(b))
        other = self.gensim.rank(a, b)
        if int(own) == other:
            return 0
        scores = self.units @ self.units[self.row(a)]
        close = int((np.abs(scores - scores[self.row(b)]) <= TIE).sum()) - 1
        if not abs(int(own) - other) <= close:
            self.complain(
                f"rank {a} {b}", f"{own}, gensim {other}, with {close} rows as close as that"
            )
            return 0
        return 1

    def sim(self, chance):
        a, b = self.words(chance, 2)
        ((own,),) = self.ask(b"SIM " + harness.quoted(a) + b" " + harness.quoted(b))
        other = float(self.gensim.similarity(a, b))
        if not abs(float(own) - other) <= TIE:
            self.complain(f"sim {a} {b}", f"{own}, gensim {other:.9f}")
        return 0

    def sets(self, chance):
        a, b = self.words(chance, 1, 20), self.words(chance, 1, 20)
        group = b"( %s ) ( %s )" % tuple(b" ".join(map(harness.quoted, words)) for words in (a, b))
        ((own,),) = self.ask(b"SIM " + group)
        other = float(self.gensim.n_similarity(a, b))
        if not abs(float(own) - other) <= TIE:
            self.complain(f"sets {a} {b}", f"{own}, gensim {other:.9f}")
        return 0

    def compare(self, kind, count):
        chance = random.Random(f"{self.seed} {kind}")
        before, excused, begun = self.failures, 0, time.monotonic()
        for _ in range(count):
            excused += getattr(self, kind)(chance)
        seconds = time.monotonic() - begun
        print(
            (
                f"{kind:<8} {count} cases, {self.failures - before} disagree, {excused} within"
                f" {TIE:g}, {seconds:.0f} s"
            ),
            flush=True,
        )


KINDS = ("near", "analogy", "odd", "rank", "sim", "sets")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("served", metavar="BIN_DIR|SOCKET")
    parser.add_argument("vectors", metavar="VECTORS")
    parser.add_argument("--count", type=int, default=1000, help="cases of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--only", choices=KINDS)
    arguments = parser.parse_args()
    vectors = KeyedVectors.load_word2vec_format(arguments.vectors, binary=False, no_header=True)
    print(f"{len(vectors.index_to_key)} x {vectors.vector_size}", flush=True)
    with served(arguments.served, arguments.vectors) as path:
        comparison = Comparison(vectors, path, arguments.seed)
        for kind in KINDS if arguments.only is None else (arguments.only,):
            comparison.compare(kind, arguments.count)
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
