"""The arguments of KeyedVectors: keys with weights, and how many words to search and to return."""

from __future__ import annotations

import operator
from numbers import Integral
from typing import Any, Iterable, List, Optional, Tuple, Union

from . import _vectors
from ._keyed_call import is_key

_MAX_COUNT = 2**32 - 1

Vocabulary = Union[None, int, Iterable[Union[str, int]]]
"""restrict_vocab: how many of the most frequent words are searched, or which words."""


def _listed(value: Any) -> Any:
    """The keys of an argument that may be None, one key or vector, a matrix, or a list.

    An array of words is a list: numpy.unique() and a column of pandas give such arrays.
    """
    if value is None:
        return []
    if is_key(value):
        return [value]
    if _vectors.is_vector(value):
        dimensions = getattr(value, "ndim", 1)
        is_list = dimensions == 2 or dimensions == 1 and isinstance(next(iter(value), None), str)
        return list(value) if is_list else [value]
    return value


def keys_of(positive: Any, negative: Any) -> Tuple[List[Any], int]:
    """The keys and vectors of both arguments, and how many of them are positive."""
    added, subtracted = _listed(positive), _listed(negative)
    try:
        return list(added + subtracted), len(added)
    except TypeError:
        raise TypeError(
            "positive and negative are lists of keys, not"
            f" {type(added).__name__} and {type(subtracted).__name__}"
        ) from None


def weighted_keys(positive: Any, negative: Any) -> Tuple[List[Any], List[float]]:
    """The keys and vectors of both arguments, of which each may be a pair of one and its weight."""
    keys, positives = keys_of(positive, negative)
    weights = [1.0] * positives + [-1.0] * (len(keys) - positives)
    for index, key in enumerate(keys):
        if not is_key(key) and not _vectors.is_vector(key):
            keys[index], weights[index] = _weighted(key)
    return keys, weights


def _weighted(pair: Any) -> Tuple[Any, float]:
    """The key and the weight of a pair."""
    try:
        key, weight = pair
        return key, float(weight)
    except (TypeError, ValueError):
        raise TypeError(
            "positive and negative have keys, vectors, and pairs of one and its weight, not"
            f" {type(pair).__name__}"
        ) from None


def top_of(restrict_vocab: Any, name: str = "restrict_vocab") -> Optional[int]:
    """The protocol's top= for restrict_vocab, which gensim ignores if it is 0."""
    if restrict_vocab is None:
        return None
    try:
        count = operator.index(restrict_vocab)
    except TypeError:
        raise TypeError(
            f"{name} is a number: how many of the most frequent words are searched, not"
            f" {type(restrict_vocab).__name__}. To search a list of words, see restrict_vocab= of"
            " most_similar(), or within= of client.near()"
        ) from None
    if count < 0:
        raise ValueError(f"{name} is a number of words, not {count}")
    return min(count, _MAX_COUNT) or None


def searched(restrict_vocab: Any) -> Tuple[Optional[int], Optional[List[Any]]]:
    """The protocol's top= for a restrict_vocab that is a number, and the words of one that is a
    list."""
    if isinstance(restrict_vocab, str) or not isinstance(restrict_vocab, Iterable):
        return top_of(restrict_vocab), None
    words = list(restrict_vocab)
    if not words:
        raise ValueError("restrict_vocab is an empty list: there is no word to search")
    return None, words


def refuse_all(topn: object, remedy: str) -> None:
    """Raises an error if topn is None, which asks for all words, or no number."""
    if topn is None:
        raise NotImplementedError(f"topn=None, scores of all words, is not answered: {remedy}")
    if not isinstance(topn, Integral):
        raise TypeError(f"topn is an int, not {type(topn).__name__}")
