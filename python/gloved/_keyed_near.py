"""The answers of KeyedVectors that take more than one request, or are not the daemon's alone."""

from __future__ import annotations

import itertools
import logging
import math
from numbers import Integral
from typing import Any, Iterable, Iterator, List, Optional, Tuple

from . import _reply, _snapshot, _vectors, requests
from ._keyed_call import Call, is_askable, not_present
from ._wire import Request, line, quote
from .errors import BadRequest, GlovedError, TooLong, UnknownWord, ZeroVector, copy_to_raise

Hits = List[Tuple[str, float]]

_logger = logging.getLogger(__name__)

_COSMUL_EPSILON = 0.000001


def index_of(call: Call, key: Any, default: Optional[int]) -> int:
    """get_index() of a key."""
    index: Any = None
    if isinstance(key, str):
        if is_askable(key):
            has = requests.has([key], fields="rank", case="exact")
            index = next((rank for rank, _ in call.ask(Request(has.line, _reply.ranks))), None)
    elif isinstance(key, Integral):
        index = key if 0 <= int(key) < call.rows() else None
    else:
        hash(key)  # TypeError: a list is no key, known or not.
    if index is not None:
        return index  # type: ignore[no-any-return]
    if default is not None:
        return default
    if isinstance(key, str) and is_askable(key):
        # Raises with the daemon's suggestions.
        call.vector(key)
    raise not_present(key)


def nearest(
    call: Call,
    keys: List[Any],
    weights: List[float],
    k: int,
    top: Optional[int],
    only: Optional[List[Any]] = None,
) -> Hits:
    """most_similar() of keys and vectors with their weights, among all words or those of only."""
    words = [key if _vectors.is_vector(key) else call.word(key) for key in keys]
    if all(isinstance(word, str) for word in words):
        # One word as it is: the scores are those of similarity(), and may be stored.
        is_one = weights == [1.0]
        try:
            request = requests.near(
                words[0] if is_one else list(zip(words, weights)),
                k=k,
                top=top,
                only=None if only is None else call.words(only),
                norm=None if is_one else "unit",
                unknown="error",
                case="exact",
            )
            return call.ask(Request(request.line, _reply.hits))
        except TooLong:
            if only is not None:
                raise
    if only is not None:
        raise NotImplementedError(
            "restrict_vocab= of words is not answered for a vector: cosine_similarities(vector,"
            " vectors[words]) has the cosine of each"
        )
    # The daemon adds up words only. Add here, and drop the words from a longer answer.
    mean = _vectors.unit(call.mean(words, weights, True, False))
    dropped = {word for word in words if isinstance(word, str)}
    near = requests.near_vector(mean, k=call.k(k + len(dropped)), top=top)
    found = call.ask(Request(near.line, _reply.hits))
    return [hit for hit in found if hit[0] not in dropped][:k]


def nearest_each(
    cache: _snapshot.Cache,
    keys: Iterable[Any],
    topn: int,
    top: Optional[int],
    only: Optional[List[Any]],
    ignore_missing: bool,
) -> Iterator[Hits]:
    """most_similar_many() of keys."""
    call = Call(cache)

    def ask(key: Any) -> Request[Any]:
        try:
            word = call.word(key)
        except UnknownWord as error:
            # It is raised when the answers before it have come.
            missing = error.with_traceback(None)
            return Request(requests.has(("a",)).line, lambda reply: missing)
        return Request(head + quote(word).encode("utf-8", "surrogateescape"), _reply.hits)

    # Written once: the rest of a request is its word.
    options = [("k", call.k(topn)), ("top", top), ("unknown", "error"), ("case", "exact")]
    chosen = []
    if only is not None:
        chosen = [quote(word) for word in call.words(only)]
        options.append(("only", len(chosen)))
    head = line("NEAR", options, chosen) + b" "
    accepted = (UnknownWord, ZeroVector) if ignore_missing else ()
    later = iter(keys)
    first_index: List[Any] = []

    def before_an_index() -> Iterator[Request[Any]]:
        for key in later:
            if isinstance(key, Integral) and not call.has_words:
                first_index.append(key)
                return
            yield ask(key)

    while True:
        for answer in call.ask_all(before_an_index(), accepted):
            if isinstance(answer, GlovedError):
                if not ignore_missing:
                    raise copy_to_raise(answer)
                answer = []
            yield answer
        if not first_index:
            return
        # All words are read while no request is under way: it may have the only connection.
        call.snapshot()
        later = itertools.chain(first_index, later)
        first_index = []


def nearest_cosmul(
    call: Call, keys: List[Any], positives: int, topn: Any, top: Optional[int]
) -> Hits:
    """most_similar_cosmul() of keys and vectors; the first ones are positive."""
    keys = [key if _vectors.is_vector(key) else call.word(key) for key in keys]
    added, subtracted = keys[:positives], keys[positives:]
    shape = (len(added), len(subtracted))
    are_words = all(isinstance(key, str) for key in keys)
    k = call.k(topn)
    if are_words and shape == (2, 1):
        analogy = requests.analogy(
            subtracted[0], *added, method="mul", k=k, top=top, case="exact"
        )
        return call.ask(Request(analogy.line, _reply.hits))
    if are_words and shape == (1, 0):
        near = requests.near(added[0], k=k, top=top, unknown="error", case="exact")
        hits = call.ask(Request(near.line, _reply.hits))
        return [(word, (1 + score) / 2 / (1 + _COSMUL_EPSILON)) for word, score in hits]
    words = [key for key in keys if isinstance(key, str)]
    if words:
        # Raises UnknownWord, with suggestions.
        call.vectors(words)
    if not added:
        raise ValueError("there is no positive key to search with")
    return _cosmul_of_all(call.snapshot(vectors=True), added, subtracted, int(topn), top)


def _cosmul_of_all(
    snapshot: _snapshot.Snapshot,
    added: List[Any],
    subtracted: List[Any],
    topn: int,
    top: Optional[int],
) -> Hits:
    vectors = snapshot.vectors
    assert vectors is not None
    terms = [
        _vectors.unit(vectors[snapshot.place(key)]) if isinstance(key, str) else key
        for key in added + subtracted
    ]
    positives = len(added)
    scores = _vectors.cosmul_scores(
        vectors[:top],
        snapshot.norms[:top],
        terms[:positives],
        terms[positives:],
        _COSMUL_EPSILON,
    )
    excluded = {word for word in added + subtracted if isinstance(word, str)}
    best = _vectors.largest(scores, topn + len(excluded))
    hits = [(snapshot.words[index], float(scores[index])) for index in best]
    hits = [hit for hit in hits if hit[0] not in excluded]
    hits.sort(key=lambda hit: (-hit[1], hit[0].encode("utf-8", "surrogateescape")))
    return hits[:topn]


def rank(call: Call, first: str, second: str) -> int:
    """rank() of two words."""
    try:
        return call.ask(requests.rank(first, second, unknown="error", case="exact"))
    except ZeroVector:
        return 1


def closer_than(call: Call, first: str, second: str) -> List[str]:
    """closer_than() of two words."""
    place = rank(call, first, second)
    if place == 1:
        return []
    try:
        near = requests.near(first, k=place, fields="rank", unknown="error", case="exact")
        return call.ask(Request(near.line, _reply.closer))
    except BadRequest:
        # More than the daemon's max_k.
        return _closer_of_all(call, call.snapshot(vectors=True), first, second)


# Beyond what sums of float64 in another order may differ by.
_NEARLY_EQUAL = 1e-9


def _closer_of_all(
    call: Call, snapshot: _snapshot.Snapshot, first: str, second: str
) -> List[str]:
    """The words that are closer to the first word than the second is, by a look at all.

    Cosines that nearly equal the limit are asked for: they are compared as the daemon's.
    """
    vectors = snapshot.vectors
    assert vectors is not None
    # The cosine of a zero vector is NaN here, and 0 in answers.
    cosines = [
        0.0 if math.isnan(each) else float(each)
        for each in _vectors.cosines(vectors[snapshot.place(first)], vectors)
    ]
    limit = cosines[snapshot.place(second)]
    unsure = [
        word
        for word, cosine in zip(snapshot.words, cosines)
        if abs(cosine - limit) <= _NEARLY_EQUAL
    ]
    exact = dict(zip(unsure, call.similarities([(first, word) for word in unsure])))
    return [
        word
        for word, cosine in zip(snapshot.words, cosines)
        if word != first and exact.get(word, cosine) > exact[second]
    ]


def by_centrality(call: Call, keys: List[Any], use_norm: bool) -> List[Tuple[float, Any]]:
    """rank_by_centrality() of keys."""
    words = call.known(keys)
    used = [key for key, word in zip(keys, words) if word is not None]
    if not used:
        raise ValueError("no word of the list is in the model")
    if len(used) < len(keys):
        unknown = [key for key, word in zip(keys, words) if word is None]
        _logger.warning("words that are not in the model are left out: %s", unknown)
    vectors = call.vectors([word for word in words if word is not None])
    if use_norm:
        vectors = [_vectors.unit(vector) for vector in vectors]
    ones = [1.0] * len(used)
    mean = _vectors.unit(_vectors.weighted_sum(vectors, ones, len(vectors[0])))
    scores = [_vectors.dot(vector, mean) for vector in vectors]
    # An int and a str cannot be compared where scores are equal, as those of two words are.
    return sorted(zip(scores, used), key=lambda each: (each[0], str(each[1])), reverse=True)
