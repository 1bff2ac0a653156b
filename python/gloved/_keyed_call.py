"""One call of KeyedVectors: its keys, and the requests for them, all of one model."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Iterable, List, Optional, Sequence, Tuple

from . import _snapshot, _vectors, requests
from ._one_model import OneModel
from ._wire import quote
from .errors import Unavailable, UnknownWord, ZeroVector
from .results import Model

_USUAL_MAX_K = 65_536
_MAX_WORD_BYTES = 60_000


def is_key(value: object) -> bool:
    """Whether a value is a word, or the index of one."""
    return isinstance(value, (str, Integral))


def not_present(key: object) -> UnknownWord:
    """The error for a key that no model can have."""
    return UnknownWord(f"{key!r} is not in the model", word=str(key))


def is_askable(word: str) -> bool:
    """Whether a request can have the word. A model has no other words."""
    try:
        size = len(word.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return False
    return 0 < size and (size <= _MAX_WORD_BYTES // 4 or len(quote(word)) <= _MAX_WORD_BYTES)


class Call(OneModel):
    """Asks what a call needs to know. All answers are of one generation, see OneModel."""

    def __init__(self, cache: _snapshot.Cache) -> None:
        super().__init__(cache.client)
        self._cache = cache
        self._snapshot: Optional[_snapshot.Snapshot] = None

    def require(self, generation: str) -> None:
        """Takes an answer of this generation."""
        self._cache.note(generation)
        super().require(generation)

    def snapshot(self, *, vectors: bool = False) -> _snapshot.Snapshot:
        """All words of the model, and all its vectors if they are wanted."""
        if self._snapshot is None or (vectors and self._snapshot.vectors is None):
            self._snapshot = self._cache.snapshot(vectors=vectors)
            self.require(self._snapshot.generation)
            if self._snapshot.vectors is not None:
                self.require_dim(len(self._snapshot.vectors[0]))
        return self._snapshot

    @property
    def has_words(self) -> bool:
        """Whether the words have been read, which indices need."""
        return self._snapshot is not None

    def rows(self) -> int:
        """How many words the model has."""
        # Any verb that reads the model tells its size.
        return self.ask(requests.has(("a",))).info.rows

    def model(self) -> Model:
        """The model that is asked."""
        for each in self._client.models():
            if self._client.model in (None, each.model):
                self.require(each.generation)
                self._cache.model = each
                return each
        raise Unavailable(f"the daemon does not serve {self._client.model!r} any more")

    def dim(self) -> int:
        """How many numbers a vector has."""
        dim = self.model().dim
        self.require_dim(dim)
        return dim

    def k(self, topn: Any) -> int:
        """k= for topn: as many words as the model has are all words, even if topn is more."""
        return int(topn) if topn <= _USUAL_MAX_K else min(int(topn), self.rows())

    def word(self, key: Any) -> str:
        """The word that a key names, which may be unknown to the daemon.

        UnknownWord: no model can have the key, or it is an index that there is not.
        """
        if isinstance(key, str):
            if is_askable(key):
                return key
        elif isinstance(key, Integral):
            words = self.snapshot().words
            if 0 <= int(key) < len(words):
                return words[int(key)]
        else:
            hash(key)  # TypeError: a list is no key, known or not.
        raise not_present(key)

    def words(self, keys: Iterable[Any]) -> List[str]:
        """The word that each key names."""
        return [self.word(key) for key in keys]

    def known(self, keys: Iterable[Any], case: str = "exact") -> List[Optional[str]]:
        """The model's word for each key; None if it does not have it."""
        words: List[Optional[str]] = []
        for key in keys:
            try:
                words.append(self.word(key))
            except UnknownWord:
                # No model can have it.
                words.append(None)
        possible = [word for word in words if word is not None]
        names = iter(_snapshot.names(self, possible, case=case))
        return [None if word is None else next(names) for word in words]

    def vector(self, word: str) -> Any:
        """The vector of a word."""
        vector = self.ask(requests.vec([word], unknown="error", case="exact"))[0]
        self.require_dim(len(vector))
        return vector

    def vectors(self, words: Sequence[Optional[str]]) -> Any:
        """The vectors of words, a row each. The row of a None is zero."""
        if not any(words):
            return _vectors.empty_rows(len(words), self.dim())
        return _snapshot.rows(self, words)

    def mean(
        self, keys: List[Any], weights: List[float], pre_normalize: bool, ignore_missing: bool
    ) -> Any:
        """The weighted mean of the vectors of keys in float64; see get_mean_vector()."""
        vectors: List[Any] = [key if _vectors.is_vector(key) else None for key in keys]
        places = [place for place, vector in enumerate(vectors) if vector is None]
        asked = [keys[place] for place in places]
        words: List[Optional[str]] = self.known(asked) if ignore_missing else [*self.words(asked)]
        known = [(place, word) for place, word in zip(places, words) if word is not None]
        if known:
            found = self.vectors([word for _, word in known])
            for (place, _), vector in zip(known, found):
                vectors[place] = _vectors.unit(vector) if pre_normalize else vector
        used = [(vector, weight) for vector, weight in zip(vectors, weights) if vector is not None]
        total = _vectors.weighted_sum(
            (vector for vector, _ in used),
            (weight for _, weight in used),
            len(found[0]) if known else self.dim(),
        )
        return _vectors.divided(total, sum(abs(weight) for _, weight in used) or 1.0)

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words; 0 if a vector is zero."""
        try:
            answer = self.ask(requests.sim(first, second, unknown="error", case="exact"))
        except ZeroVector:
            answer = 0.0
        return _cosine(first, second, answer)

    def similarities(self, pairs: Sequence[Tuple[str, str]]) -> List[float]:
        """The cosine of each pair of words."""
        answers = self.ask_all(
            (requests.sim(*pair, unknown="error", case="exact") for pair in pairs),
            accepted=(ZeroVector,),
        )
        return [
            _cosine(*pair, 0.0 if isinstance(answer, ZeroVector) else answer)
            for answer, pair in zip(answers, pairs)
        ]


def _cosine(first: str, second: str, answer: float) -> float:
    # The rounded cosine of a vector with itself may miss 1.
    return 1.0 if first == second and answer else answer
