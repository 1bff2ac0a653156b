#!/usr/bin/env python3
"""Compares gloved.KeyedVectors with gensim's KeyedVectors, method by method.

    gensim_differential.py BIN_DIR GLOVE_TXT [--cases N] [--seed S] [--only METHOD ...]

GLOVE_TXT is GloVe's text. This converts it, serves it with a daemon of its own, loads it into
gensim, and calls each method of both with N random arguments (1,000; evaluations N / 50). Many are
odd: unknown words, empty lists, duplicates, words on both sides, ints, vectors, topn=0.
most_similar_cosmul is not asked with ints: gloved takes them, gensim does not. restrict_vocab there
is compared with gensim's scores of all words, since gensim ignores it.

Words and their order must be equal, scores within 1e-6 (cosmul: relative), and an exception must be
of gensim's class or one derived from it. gensim computes in float32, so words may change places if
their float64 scores are closer than 1e-6: the table counts answers where some do. Where gloved
differs on purpose, see KeyedVectors, the table counts «on purpose»: a query vector of zero, an
evaluation without a question, an item that is no key, vector or pair. Words whose own vector is
zero are not asked. Every public name of gensim's object must be there, or tell what to use instead.
Exit status 1 on any other difference. Needs Debian's python3-gensim.
"""
import contextlib
import logging
import os
import random
import sys
import tempfile
import time
import warnings

import numpy as np
from gensim.models import KeyedVectors as Gensim

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../python"), os.path.join(HERE, "../faults")]
import gloved  # noqa: E402
import harness  # noqa: E402

TIE = 1e-6
UNKNOWN = ("", "xyzzy-foo", "Queen Mary", "\x00", "a\tb", "\udcff\udcfe", "\ud800", "x" * 70000)
UNKNOWN_INTS = (-1, 10**9)


class Difference(Exception):
    """What differs."""


class World:
    """Both libraries, the true vectors, and random arguments."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        rows = theirs.vectors.astype(np.float64)
        self.norms = np.sqrt((rows * rows).sum(axis=1))
        self.units = rows / np.where(self.norms == 0, 1, self.norms)[:, None]
        self.words = [w for w, n in zip(theirs.index_to_key, self.norms) if n > 0]
        self.chance = random.Random()
        self.swapped = False
        self.flaw = ""
        """What may be wrong with keys of a case: of two flaws either may be told of first."""

    def row(self, key):
        return key if isinstance(key, int) else self.theirs.key_to_index[key]

    # Arguments

    def odd(self, one_in=8):
        return self.chance.randrange(one_in) == 0

    def word(self):
        # Half are frequent: random words have strange neighbours.
        return self.chance.choice(self.words[: self.chance.choice((5000, len(self.words)))])

    def key(self, ints=True):
        if self.odd(30) and self.flaw == "unknown":
            return self.chance.choice(UNKNOWN + (UNKNOWN_INTS if ints else ()))
        if ints and self.odd(10):
            return self.theirs.key_to_index[self.word()]
        return self.word()

    def vector(self):
        chance = self.chance
        if self.odd(20) and self.flaw == "length":
            return np.ones(self.units.shape[1] + 1, np.float32)
        if self.odd(2):
            vector = self.units[self.row(self.word())] * chance.uniform(0.1, 9)
        else:
            vector = np.array([chance.gauss(0, 1) for _ in range(self.units.shape[1])])
        return vector.astype(chance.choice((np.float32, np.float64)))

    def keys(self, least=0, most=6, vectors=False, weights=False, ints=True):
        keys = []
        for _ in range(self.chance.randint(least, most)):
            key = self.vector() if vectors and self.odd(12) else self.key(ints)
            if weights and self.odd(5):
                key = (key, self.chance.choice((1, 2.5, -1.0, 0.0, self.chance.uniform(-2, 2))))
            keys.append(key)
        if keys and self.odd():
            keys.append(self.chance.choice(keys))
        return keys

    def topn(self):
        if self.odd(20):
            return self.chance.choice((0, -1, np.uint8(0), np.int64(7), np.uint8(3)))
        return self.chance.choice((1, 5, 10, 10, 10, 100))

    def restrict(self):
        if self.odd(4):
            return self.chance.choice((1, 5, 100, 5000, 30000, np.int64(50), 10**9, 0))
        return None

    # Comparisons

    def same(self, ours, theirs):
        if type(ours) is not type(theirs) or ours != theirs:
            raise Difference(f"{ours!r}, gensim {theirs!r}")

    def close(self, ours, theirs):
        if not isinstance(ours, float) or not abs(ours - theirs) <= TIE:
            raise Difference(f"{ours!r}, gensim {theirs!r}")

    def close_arrays(self, ours, theirs):
        if type(ours) is not type(theirs) or ours.shape != theirs.shape:
            raise Difference(f"{type(ours)} of shape {np.shape(ours)}, gensim {np.shape(theirs)}")
        if ours.dtype != theirs.dtype:
            raise Difference(f"{ours.dtype}, gensim {theirs.dtype}")
        scale = np.maximum(1, np.abs(theirs))
        wrong = ~(np.abs(ours.astype(float) - theirs) <= TIE * scale)
        wrong &= ~(np.isnan(ours) & np.isnan(theirs))
        if wrong.any():
            place = np.argwhere(wrong)[0]
            raise Difference(f"at {place}: {ours[tuple(place)]!r}, gensim {theirs[tuple(place)]!r}")

    def same_arrays(self, ours, theirs):
        self.close_arrays(ours, theirs)
        if (ours != theirs).any():
            raise Difference("other numbers")

    def ranking(self, true_scores, relative=False):
        """Compares lists of (word, score); true_scores() has the float64 scores of all rows."""

        def compare(ours, theirs):
            if not isinstance(ours, list) or not all(
                type(hit) is tuple and type(hit[0]) is str and type(hit[1]) is float
                for hit in ours
            ):
                raise Difference(f"not a list of (str, float): {ours!r}")
            if len(ours) != len(theirs) or len({word for word, _ in ours}) != len(ours):
                raise Difference(f"{len(ours)} words, gensim {len(theirs)}")
            true = None
            for (own, score), (other, their_score) in zip(ours, theirs):
                if own == other and abs(score - their_score) <= TIE:
                    continue
                true = true_scores() if true is None else true
                truth, other_truth = true[self.row(own)], true[self.row(other)]
                tie = TIE * (abs(truth) if relative else 1)
                if not abs(score - truth) <= tie:
                    raise Difference(f"{own!r} has {score!r}, truly {truth!r}")
                if not abs(truth - other_truth) <= tie:
                    raise Difference(f"{own!r} {truth!r}, gensim {other!r} {other_truth!r}")
                self.swapped |= own != other
                # With the true scores, gensim's own error is no matter of gloved.

        return compare

    def mean(self, positive, negative):
        """The query vector in float64."""
        total = np.zeros(self.units.shape[1])
        for sign, keys in ((1, positive), (-1, negative)):
            for key in keys if isinstance(keys, list) else [keys]:
                key, weight = key if isinstance(key, tuple) else (key, sign)
                vector = key if isinstance(key, np.ndarray) else self.units[self.row(key)]
                total += weight * vector
        return total

    def cosines(self, vector):
        return lambda: self.units @ (vector() / np.linalg.norm(vector()))

    def on_purpose(self, positive, negative):
        """The exception of gloved where gensim has an answer or another exception, or None."""
        for side in (positive, negative):
            for key in side if isinstance(side, list) else []:
                if isinstance(key, tuple) and (len(key) != 2 or isinstance(key[1], str)):
                    return TypeError
        try:
            zero = np.linalg.norm(self.mean(positive, negative)) < 1e-6
        except (KeyError, IndexError, TypeError, ValueError):
            zero = False
        return gloved.ZeroVector if zero else None


# Each method: a function that draws arguments, and returns a call, a comparison, the arguments as
# text, and the exception that either library raises on purpose.


def most_similar(w):
    weighted = {"vectors": True, "weights": True}
    positive, negative = w.keys(0 if w.odd() else 1, 4, **weighted), []
    if w.odd(2):
        negative = w.keys(0, 3, **weighted)
    if w.odd(20) and positive:
        negative = negative + [positive[0]]
    if len(positive) == 1 and w.odd(3) and not isinstance(positive[0], tuple):
        positive = positive[0]
    options = {"topn": w.topn()}
    restrict = w.restrict()
    if restrict is not None:
        options[w.chance.choice(("restrict_vocab", "clip_end"))] = restrict
    arguments = f"{positive!r:.200}, {negative!r:.200}, {options}"
    return (
        lambda kv: kv.most_similar(positive, negative, **options),
        w.ranking(w.cosines(lambda: w.mean(positive, negative))),
        arguments,
        w.on_purpose(positive, negative),
    )


def most_similar_sides(w):
    """Argument types: None, tuples, matrices, weights that are no numbers."""
    matrix = w.theirs.vectors[:3]
    options = {}
    choices = (
        (None, None),
        (None, w.word()),
        ([], []),
        ((w.word(),), None),
        ((w.word(), w.word()), (w.word(),)),
        ([None], None),
        ([w.word(), None], None),
        (matrix, None),
        (matrix, [w.word()]),
        ([(w.word(),)], None),
        ([(w.word(), "x")], None),
        ([[w.word()]], None),
        ([[w.word(), 2]], []),
        ({w.word()}, None),
        (2.5, None),
        ([2.5], None),
        (w.word(), w.word()),
        ([(w.word(), 1), (w.vector(), 0.5)], None),
        (np.int64(3), [np.str_(w.word())]),
    )
    positive, negative = w.chance.choice(choices)
    if w.odd():
        # One argument is wrong at a time: which of two is told of first does not matter.
        positive, negative = w.word(), None
        options = w.chance.choice(({"topn": 1.5}, {"topn": "3"}, {"restrict_vocab": 2.5}))

    def flat(keys):
        keys = list(keys) if isinstance(keys, (np.ndarray, tuple, list)) else [keys]
        return [tuple(key) if isinstance(key, list) else key for key in keys if key is not None]

    sides = flat(positive), flat(negative)
    return (
        lambda kv: kv.most_similar(positive, negative, **options),
        w.ranking(w.cosines(lambda: w.mean(*sides))),
        f"{positive!r:.200}, {negative!r:.200}, {options}",
        w.on_purpose(*sides),
    )


def similar(w, method):
    key = w.vector() if method == "similar_by_vector" and not w.odd() else w.key()
    topn, restrict = w.topn(), w.restrict()
    return (
        lambda kv: getattr(kv, method)(key, topn, restrict),
        w.ranking(w.cosines(lambda: w.mean([key], []))),
        f"{key!r:.200}, {topn}, {restrict}",
    )


def most_similar_cosmul(w):
    positive = w.keys(0 if w.odd() else 1, 3, vectors=w.odd(3), ints=False)
    negative = w.keys(0, 2, vectors=w.odd(3), ints=False)
    if w.odd(2):
        positive, negative = [w.word(), w.word()], [w.word()]
    if w.odd(20) and positive:
        negative = negative + [positive[0]]
    if w.odd(40) and positive:
        positive = [(positive[0], 1.0)]
    topn = w.topn()
    top = w.restrict() if isinstance(topn, (int, np.integer)) and topn >= 1 else None

    def shifted(key):
        vector = key if isinstance(key, np.ndarray) else w.units[w.row(key)]
        return (1 + w.units @ vector) / 2

    def true():
        over = np.prod([shifted(key) for key in positive], axis=0)
        return over / (np.prod([shifted(key) for key in negative], axis=0) + 1e-6)

    def call(kv):
        if kv is w.ours or not top:
            return kv.most_similar_cosmul(positive, negative, topn, top)
        # gensim ignores restrict_vocab here.
        scores = kv.most_similar_cosmul(positive, negative, None)[:top]
        inputs = [key for key in positive + negative if isinstance(key, str)]
        order = [i for i in np.argsort(-scores) if kv.index_to_key[i] not in inputs]
        return [(kv.index_to_key[i], float(scores[i])) for i in order[:topn]]

    return call, w.ranking(true, True), f"{positive!r:.200}, {negative!r:.200}, {topn}, {top}"


def similarity(w, method="similarity"):
    a, b = w.key(), w.key()
    b = a if w.odd(20) else b
    return lambda kv: getattr(kv, method)(a, b), w.close, f"{a!r:.99}, {b!r:.99}"


def two_keys(w):
    a, b = w.key(), w.key()
    with contextlib.suppress(KeyError, ValueError):
        if not w.odd(3):
            # One that is near: far away so many are close to each other that ranks say little.
            b = w.theirs.similar_by_key(w.word() if isinstance(a, int) else a, topn=300)[
                w.chance.randrange(300)
            ][0]
    return a, a if w.odd(20) else b


def rank(w):
    a, b = two_keys(w)

    def compare(ours, theirs):
        if ours == theirs and type(ours) is int:
            return
        scores = w.units @ w.units[w.row(a)]
        close = int((np.abs(scores - scores[w.row(b)]) <= TIE).sum()) - 1
        if not abs(ours - theirs) <= close:
            raise Difference(f"{ours}, gensim {theirs}, {close} are as close")
        w.swapped = True

    return lambda kv: kv.rank(a, b), compare, f"{a!r:.99}, {b!r:.99}"


def closer_than(w):
    a, b = two_keys(w)

    def compare(ours, theirs):
        if ours == theirs:
            return
        scores = w.units @ w.units[w.row(a)]
        for word in set(ours) ^ set(theirs):
            if not abs(scores[w.row(word)] - scores[w.row(b)]) <= TIE:
                raise Difference(f"{word!r} is in one answer")
        both = set(ours) & set(theirs)
        if [x for x in ours if x in both] != [x for x in theirs if x in both]:
            raise Difference("another order")
        w.swapped = True

    return lambda kv: kv.closer_than(a, b), compare, f"{a!r:.99}, {b!r:.99}"


def word_list(w, least=0):
    words = w.keys(least, 8, ints=False)
    if w.odd(4):
        # All of one type: gensim compares keys whose scores are equal, and an int with a str fails.
        words = [w.theirs.key_to_index.get(key, key) for key in words] + [-1] * w.odd()
    return "".join(w.chance.sample("abcdefgh", 3)) if w.odd(25) else words


def known(w, words):
    return [key for key in words if key in w.theirs]


def centrality(w, words, use_norm=True):
    rows = np.array([w.units[w.row(key)] for key in words])
    if not use_norm:
        rows = rows * np.array([w.norms[w.row(key)] for key in words])[:, None]
    total = rows.sum(axis=0)
    return dict(zip(words, rows @ (total / np.linalg.norm(total))))


def doesnt_match(w):
    words = word_list(w)

    def compare(ours, theirs):
        if ours == theirs:
            return
        scores = centrality(w, known(w, words))
        if not abs(scores[ours] - scores[theirs]) <= TIE:
            raise Difference(f"{ours!r} {scores[ours]!r}, gensim {theirs!r} {scores[theirs]!r}")
        w.swapped = True

    return lambda kv: kv.doesnt_match(words), compare, f"{words!r:.300}"


def rank_by_centrality(w):
    words, use_norm = word_list(w), not w.odd(3)

    def compare(ours, theirs):
        scores = centrality(w, known(w, words), use_norm)
        if len(ours) != len(theirs):
            raise Difference(f"{len(ours)} words, gensim {len(theirs)}")
        for (score, own), (_, other) in zip(ours, theirs):
            scale = max(1, abs(scores[own]))
            if type(score) is not float or not abs(score - scores[own]) <= TIE * scale:
                raise Difference(f"{own!r} has {score!r}, truly {scores[own]!r}")
            if not abs(scores[own] - scores[other]) <= TIE * scale:
                raise Difference(f"{own!r}, gensim {other!r}")
            w.swapped |= own != other

    return lambda kv: kv.rank_by_centrality(words, use_norm), compare, f"{words!r:.300}, {use_norm}"


def get_vector(w):
    key, norm = w.key(), w.odd(2)

    def compare(ours, theirs):
        (w.close_arrays if norm else w.same_arrays)(ours, theirs)
        if ours.flags.writeable != theirs.flags.writeable:
            raise Difference("one can be written to")

    return lambda kv: kv.get_vector(key, norm), compare, f"{key!r:.99}, {norm}"


def getitem(w):
    keys = w.key() if w.odd(3) else w.keys(0, 6)
    keys = tuple(keys) if isinstance(keys, list) and w.odd(4) else keys
    return lambda kv: kv[keys], w.same_arrays, f"{keys!r:.300}"


def contains(w):
    key = w.chance.choice(([], {}, None, 2.5, (1,), w.key(), w.key())) if w.odd(4) else w.key()
    return lambda kv: key in kv, w.same, f"{key!r:.99}"


def has_index_for(w):
    key = w.key()
    return lambda kv: kv.has_index_for(key), w.same, f"{key!r:.99}"


def get_index(w):
    key, default = w.key(), w.chance.choice((None, None, -1, 7))
    return lambda kv: kv.get_index(key, default), w.same, f"{key!r:.99}, {default}"


def most_similar_to_given(w):
    key, keys = w.key(), w.keys(0 if w.odd(20) else 1, 6)

    def compare(ours, theirs):
        if ours != theirs:
            a, b = (w.units[w.row(key)] @ w.units[w.row(each)] for each in (ours, theirs))
            if not abs(a - b) <= TIE:
                raise Difference(f"{ours!r}, gensim {theirs!r}")
            w.swapped = True

    return lambda kv: kv.most_similar_to_given(key, keys), compare, f"{key!r:.99}, {keys!r:.200}"


def n_similarity(w):
    a, b = word_list(w, 1), word_list(w)
    return lambda kv: kv.n_similarity(a, b), w.close, f"{a!r:.200}, {b!r:.200}"


def get_mean_vector(w):
    keys = w.keys(0 if w.odd() else 1, 6, vectors=True)
    weights = None
    if w.odd(2):
        weights = [w.chance.choice((1, 0, -1, w.chance.uniform(-2, 2))) for _ in keys]
        weights = weights[1:] if w.odd(20) else weights
        weights = np.array(weights) if w.odd(2) else weights
    options = {
        name: w.odd(2) for name in ("pre_normalize", "post_normalize", "ignore_missing")
    }
    if options["post_normalize"] and weights is not None:
        # A sum that cancels has no direction that float32 knows.
        weights = np.abs(weights) + 1 if len(weights) else weights
    return (
        lambda kv: kv.get_mean_vector(keys, weights, **options),
        w.close_arrays,
        f"{keys!r:.200}, {weights}, {options}",
    )


def relative_cosine_similarity(w):
    a, b, topn = w.key(), w.key(), w.chance.choice((0, 1, 10, 10, 50))

    def compare(ours, theirs):
        if not isinstance(ours, float) or not abs(ours - theirs) <= TIE * max(1, abs(theirs)):
            raise Difference(f"{ours!r}, gensim {theirs!r}")

    call = lambda kv: kv.relative_cosine_similarity(a, b, topn)  # noqa: E731
    return call, compare, f"{a!r:.99}, {b!r:.99}, {topn}"


def distances(w):
    key = w.vector() if w.odd(4) else w.key()
    others = w.keys(0 if w.odd(3) else 1, 6)
    return lambda kv: kv.distances(key, others), w.close_arrays, f"{key!r:.99}, {others!r:.200}"


def cosine_similarities(w):
    vector = w.vector()
    rows = np.array([w.units[w.row(w.word())] for _ in range(w.chance.randint(1, 5))])
    rows = rows.astype(w.chance.choice((np.float32, np.float64)))
    return lambda kv: kv.cosine_similarities(vector, rows), w.close_arrays, repr(vector)[:99]


def whole(w, get):
    return lambda kv: get(kv), None, ""


def evaluation_file(w, write):
    path = os.path.join(tempfile.gettempdir(), f"gloved-evaluation-{os.getpid()}")
    with open(path, "w", encoding="utf-8") as file:
        write(file)
    return path


def evaluation_options(w):
    return {
        "restrict_vocab": w.chance.choice((300000, 3000, 1000, None)),
        "case_insensitive": w.odd(2),
        "dummy4unknown": w.odd(2),
    }


def frequent_words(w, limit):
    """Words that an evaluation's line can have."""
    while True:
        word = w.words[w.chance.randrange(limit)]
        with contextlib.suppress(UnicodeEncodeError):
            word.encode("utf-8")
            if len(word.split()) == 1 and "#" not in word:
                return w.chance.choice((word, word, word.upper(), word.title()))


def evaluate_word_analogies(w):
    def write(file):
        for section in range(0 if w.odd(10) else w.chance.randint(1, 3)):
            file.write(f": section {section}\n")
            for _ in range(w.chance.randint(0, 12)):
                words = [frequent_words(w, 3000) for _ in range(4)]
                with contextlib.suppress(KeyError):
                    # The right answer, as gensim sees it, so that some are right.
                    hit = w.theirs.most_similar([words[1], words[2]], [words[0]], topn=1)[0][0]
                    words[3] = hit if w.odd(2) else words[3]
                if w.odd(20):
                    words[3] = words[w.chance.randrange(3)]
                file.write(" ".join(words[: 3 if w.odd(20) else 4]) + "\n")
            file.write("xyzzyfoo a b c\n")

    path = evaluation_file(w, write)
    options = evaluation_options(w)

    def compare(ours, theirs):
        if ours != theirs:
            raise Difference(f"{ours!r:.200}, gensim {theirs!r:.200}")

    empty = not any(line.startswith(":") for line in open(path, encoding="utf-8"))
    # gensim divides by the number of the last line, counted from 0.
    purpose = ZeroDivisionError if empty else None
    return lambda kv: kv.evaluate_word_analogies(path, **options), compare, str(options), purpose


def words_of_pair(w, scores):
    """Two words whose score is not that of an earlier pair but for rounding. In float32 such pairs
    may rank in another order. Adds the score to the list."""
    while True:
        a, b = frequent_words(w, 3000), frequent_words(w, 3000)
        try:
            score = w.theirs.similarity(a.lower(), b.lower())
        except KeyError:
            return a, b
        if all(abs(score - each) > TIE for each in scores):
            scores.append(score)
            return a, b


def evaluate_word_pairs(w):
    count = w.chance.choice((0, 1, 2, 10, 100))
    scores = []

    def write(file):
        file.write("# comment\n")
        for _ in range(count):
            a, b = words_of_pair(w, scores)
            a = "xyzzyfoo" if w.odd(20) else a
            file.write(f"{a}\t{b}\t{w.chance.uniform(0, 10):.2f}\n" if not w.odd(20) else f"{a}\n")

    path = evaluation_file(w, write)
    options = evaluation_options(w)

    def compare(ours, theirs):
        flat = [(*ours[0], *ours[1], ours[2]), (*theirs[0], *theirs[1], theirs[2])]
        # Of two pairs, and where ranks tie but for rounding, a p-value means nothing.
        for index, (a, b) in enumerate(zip(*flat)):
            if not (abs(a - b) <= 1e-5 or (np.isnan(a) and np.isnan(b))) and index not in (3,):
                raise Difference(f"{ours}, gensim {theirs}")

    return lambda kv: kv.evaluate_word_pairs(path, **options), compare, f"{count} pairs, {options}"


METHODS = {
    "most_similar": (1, most_similar),
    "most_similar, argument types": (1, most_similar_sides),
    "similar_by_word": (1, lambda w: similar(w, "similar_by_word")),
    "similar_by_key": (1, lambda w: similar(w, "similar_by_key")),
    "similar_by_vector": (1, lambda w: similar(w, "similar_by_vector")),
    "most_similar_cosmul": (1, most_similar_cosmul),
    "similarity": (1, similarity),
    "distance": (1, lambda w: similarity(w, "distance")),
    "rank": (1, rank),
    "closer_than": (1, closer_than),
    "doesnt_match": (1, doesnt_match),
    "rank_by_centrality": (1, rank_by_centrality),
    "get_vector": (1, get_vector),
    "[key or keys]": (1, getitem),
    "key in": (1, contains),
    "has_index_for": (1, has_index_for),
    "get_index": (1, get_index),
    "most_similar_to_given": (1, most_similar_to_given),
    "n_similarity": (1, n_similarity),
    "get_mean_vector": (1, get_mean_vector),
    "relative_cosine_similarity": (1, relative_cosine_similarity),
    "distances": (1, distances),
    "cosine_similarities": (1, cosine_similarities),
    "evaluate_word_analogies": (50, evaluate_word_analogies),
    "evaluate_word_pairs": (50, evaluate_word_pairs),
}

WHOLE = {
    "len": (len, World.same),
    "vector_size": (lambda kv: kv.vector_size, World.same),
    "index_to_key": (lambda kv: kv.index_to_key, World.same),
    "key_to_index": (lambda kv: kv.key_to_index, World.same),
    "vectors": (lambda kv: kv.vectors, World.same_arrays),
    "get_normed_vectors": (lambda kv: kv.get_normed_vectors(), World.close_arrays),
}


def outcome(call, kv):
    try:
        return call(kv), None
    except Exception as error:
        return None, error


def compare_case(world, call, compare, purpose):
    """What the case counts as: answer, exception, or on purpose."""
    ours, our_error = outcome(call, world.ours)
    theirs, their_error = outcome(call, world.theirs)
    if purpose and (isinstance(our_error, purpose) or isinstance(their_error, purpose)):
        return "on purpose"
    if their_error is not None:
        if not isinstance(our_error, type(their_error)):
            raise Difference(f"{our_error!r:.200} {ours!r:.99}, gensim {their_error!r:.200}")
        if isinstance(our_error, KeyError) and not isinstance(our_error, gloved.UnknownWord):
            raise Difference(f"not an UnknownWord: {our_error!r:.200}")
        return "exception"
    if our_error is not None:
        raise Difference(f"{our_error!r:.200}, gensim {theirs!r:.200}")
    compare(ours, theirs)
    return "answer"


def cases_of(name, world, count, seed):
    if name in WHOLE:
        get, compare = WHOLE[name]
        yield get, lambda ours, theirs: compare(world, ours, theirs), "", None
        return
    divisor, draw = METHODS[name]
    for case in range(max(1, count // divisor)):
        world.chance.seed(f"{seed} {name} {case}")
        world.flaw = world.chance.choice(("unknown", "unknown", "length"))
        call, compare, arguments, *purpose = draw(world)
        yield call, compare, arguments, purpose[0] if purpose else None


def check_names(world, verdicts):
    """Every public name of gensim's object is there, or its AttributeError tells what to use."""
    for name in (name for name in dir(world.theirs) if not name.startswith("_")):
        try:
            getattr(type(world.ours), name)
        except AttributeError as error:
            if str(error).endswith(f"no attribute {name!r}"):
                verdicts.add(f"{name}: {error}")


@harness.program(
    harness.option("text", None, "GloVe's text"),
    harness.option("--cases", 1000, "cases of each method"),
    harness.option("--seed", 20, "seed of the cases"),
    harness.option("--only", None, "these methods", nargs="+", choices=[*METHODS, *WHOLE]),
)
def main(arguments, verdicts):
    warnings.simplefilter("ignore")
    logging.disable()
    theirs = Gensim.load_word2vec_format(
        arguments.text, binary=False, no_header=True, unicode_errors="surrogateescape"
    )
    model = harness.convert(arguments.bin, arguments.text, os.path.join(arguments.work, "model"))
    with harness.Service(arguments.bin, arguments.work, model, engine=None) as daemon:
        world = World(gloved.connect(daemon.path), theirs)
        zeros = len(theirs) - len(world.words)
        print(f"{len(theirs)} x {theirs.vector_size}, {zeros} of them zero")
        check_names(world, verdicts)
        print(
            f"{'method':<28} {'cases':>6} {'answers':>8} {'with swaps':>10} {'exceptions':>10}"
            f" {'on purpose':>10} {'differences':>11} {'seconds':>8}"
        )
        for name in arguments.only or [*METHODS, *WHOLE]:
            begun = time.monotonic()
            counts = dict.fromkeys(("answer", "exception", "on purpose", "difference", "swap"), 0)
            cases = cases_of(name, world, arguments.cases, arguments.seed)
            for call, compare, shown, purpose in cases:
                world.swapped = False
                try:
                    counts[compare_case(world, call, compare, purpose)] += 1
                    counts["swap"] += world.swapped
                except Difference as difference:
                    counts["difference"] += 1
                    verdicts.add(f"{name}({shown}): {difference}")
            cases = sum(counts.values()) - counts["swap"]
            print(
                f"{name:<28} {cases:>6} {counts['answer']:>8} {counts['swap']:>10}"
                f" {counts['exception']:>10} {counts['on purpose']:>10}"
                f" {counts['difference']:>11} {time.monotonic() - begun:>8.1f}",
                flush=True,
            )
    return f"{len(arguments.only or [*METHODS, *WHOLE])} methods"
