"""All words of a model, and all its vectors, read through the daemon."""

from __future__ import annotations

import threading
import time
from array import array
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
)

from . import _fork, _reply, _vectors, requests
from ._one_model import OneModel
from ._reply import Reply
from ._wire import Request
from .errors import Internal
from .results import Answer, Model, Word

if TYPE_CHECKING:
    from .client import Client

# Bytes that a word of a model may have.
_BYTES = [bytes((byte,)) for byte in range(1, 256) if byte not in b"\t\n\r"]

# Quoted, a character has at most four bytes. A request has at most 65,536.
_MAX_CHARACTERS = 14_000
_MAX_WORDS = 128

_FRESH_SECONDS = 0.1
"""How long words and vectors that were read count as the daemon's without asking it again."""


def chunks(words: Sequence[str]) -> Iterator[slice]:
    """Slices of words that fit into one request each."""
    start = characters = 0
    for index, word in enumerate(words):
        characters += len(word) + 1
        if index > start and (index - start >= _MAX_WORDS or characters > _MAX_CHARACTERS):
            yield slice(start, index)
            start, characters = index, len(word) + 1
    if start < len(words):
        yield slice(start, len(words))


def has(
    asked: OneModel, words: Sequence[str], **options: Any
) -> Iterator[Tuple[Answer[Word], slice]]:
    """The answers to HAS for many words, each with the slice of the words that it is for."""
    parts = list(chunks(words))
    return zip(asked.ask_all(requests.has(words[part], **options) for part in parts), parts)


def listed_names(answer: Answer[Word]) -> List[Optional[str]]:
    """The model's word for each word of an answer to HAS; None if it has none. Where the answer has
    unlisted words, some of these may stand as they were asked."""
    replaced = answer.info.replaced
    return [replaced.get(each.word, each.word) if each.known else None for each in answer]


def names(asked: OneModel, words: Sequence[str], **options: Any) -> List[Optional[str]]:
    """The model's word for each of the words, which may be in another case; None if it has none.

    The options are those of HAS.
    """
    found: List[Optional[str]] = []
    unlisted = []
    for answer, part in has(asked, words, **options):
        found += listed_names(answer)
        if answer.info.unlisted and part.stop - part.start > 1:
            unlisted.append(part)
    # A reply does not name every word that it replaced. One of fewer words does.
    for part in unlisted:
        middle = (part.start + part.stop) // 2
        for half in (slice(part.start, middle), slice(middle, part.stop)):
            found[half] = names(asked, words[half], **options)
    return found


def _bytes_of_reply(count: int, reply: Reply) -> bytes:
    return _vectors.join_base64(_reply.vectors(reply, count, may_skip=False))


def rows(
    asked: OneModel,
    words: Sequence[Optional[str]],
    tell: Callable[[int], None] = lambda _: None,
) -> Any:
    """A matrix of the vectors of words, a row each. The row of a None is zero.

    There must be at least one word. tell() gets the number of vectors that have been read, again
    and again.
    UnknownWord: the model does not have a word.
    """
    known = [word for word in words if word is not None]
    places = [place for place, word in enumerate(words) if word is not None]
    parts = list(chunks(known))
    answers = asked.ask_all(
        Request(
            requests.vec(known[part], unknown="error", case="exact").line,
            partial(_bytes_of_reply, len(known[part])),
        )
        for part in parts
    )
    matrix: Any = None
    for data, part in zip(answers, parts):
        dim = len(data) // len(known[part]) // 4
        asked.require_dim(dim)
        if matrix is None:
            matrix = _vectors.empty_rows(len(words), dim)
        _vectors.put_rows(matrix, places[part], data)
        tell(part.stop)
    return matrix


class Snapshot:
    """The words of one generation of a model by rank, most frequent first."""

    def __init__(self, generation: str, words: List[str]) -> None:
        self.generation = generation
        self.words = words
        self.index: Dict[str, int] = {word: rank for rank, word in enumerate(words)}
        self.vectors: Optional[Any] = None
        """Row i is the vector of words[i], once read_vectors() has read them."""
        self._norms: Optional[Any] = None

    def place(self, word: str) -> int:
        """The index of a word that gloved has shown. Internal: it is not among all words."""
        if word not in self.index:
            raise Internal(f"gloved showed {word!r:.80}, which is none of its words")
        return self.index[word]

    @property
    def norms(self) -> Any:
        """The length of each of the vectors, in float64."""
        if self._norms is None:
            self._norms = _vectors.row_norms(self.vectors)
        return self._norms

    def read_vectors(self, asked: OneModel) -> None:
        """Reads all vectors, unless it has. ModelReplaced: they are of another generation."""
        if self.vectors is None:
            asked.require(self.generation)
            self.vectors = _vectors.read_only(rows(asked, self.words))


def _ranks_of_reply(reply: Reply) -> Tuple[int, List[Tuple[int, str]]]:
    return _reply.rows(reply), _reply.ranks(reply)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def read_words(client: Client, asked: OneModel) -> Snapshot:
    """All words of the model.

    PREFIX returns at most max_k words. If that many begin with a byte, all that begin with it and
    any second byte are asked for, and so on. The word that is the prefix itself is asked for alone.
    """
    max_k = client.ask(Request(requests.stats().line, _reply.max_k))
    words: List[str] = []
    ranks = array("q")
    count = 0

    def take(answer: Tuple[int, List[Tuple[int, str]]]) -> None:
        nonlocal count
        count, found = answer
        ranks.extend(rank for rank, _ in found)
        words.extend(word for _, word in found)

    prefixes = _BYTES
    while prefixes:
        full: List[bytes] = []
        answers = asked.ask_all(
            Request(requests.prefix(_text(each), k=max_k, fields="rank").line, _ranks_of_reply)
            for each in prefixes
        )
        begun = len(words)
        for answer, prefix in zip(answers, prefixes):
            take(answer)
            if len(words) - begun > count:
                raise Internal(f"gloved showed more than its {count} words")
            if len(answer[1]) >= max_k:
                full.append(prefix)
        answers = asked.ask_all(
            Request(requests.has([_text(each)], fields="rank", case="exact").line, _ranks_of_reply)
            for each in full
        )
        for answer in answers:
            take(answer)
        prefixes = [prefix + byte for prefix in full for byte in _BYTES]
    assert asked.generation is not None
    snapshot = Snapshot(asked.generation, _in_order(words, ranks, count))
    if len(snapshot.index) != count:
        raise Internal(f"gloved showed {len(snapshot.index)} different words of {count}")
    return snapshot


def _in_order(words: List[str], ranks: array[int], count: int) -> List[str]:
    """The words by rank; a word may be there more than once. Internal: one is missing."""
    if count > len(words) or not all(0 <= rank < count for rank in ranks):
        raise Internal(f"gloved showed {len(words)} words of {count}, or ranks beyond them")
    ordered = [""] * count
    for rank, word in zip(ranks, words):
        ordered[rank] = word
    if "" in ordered:
        raise Internal(f"gloved showed {count - ordered.count('')} of its {count} words")
    return ordered


class Cache:
    """The words and vectors of a client's model, once they are read. Threads may share it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._lock = threading.Lock()
        self.model: Optional[Model] = None
        """What the daemon told of the model; None before, and once another one was noticed."""
        self._snapshot: Optional[Snapshot] = None
        self._noted_at = 0.0
        _fork.watch(self)

    def after_fork(self) -> None:
        """The child reads again what another thread of its parent was reading."""
        self._lock = threading.Lock()

    def note(self, generation: str) -> None:
        """Takes notice of the generation that a reply came from."""
        self._noted_at = time.monotonic()
        cached = self._snapshot
        if cached is not None and cached.generation != generation:
            self._snapshot = None
        told = self.model
        if told is not None and told.generation != generation:
            self.model = None

    def snapshot(self, *, vectors: bool) -> Snapshot:
        """All words of the model, and all its vectors if they are wanted.

        ModelReplaced: that happened while they were read.
        """
        with self._lock:
            if time.monotonic() - self._noted_at > _FRESH_SECONDS:
                self.note(self.client.has(("a",)).info.generation)
            cached = self._snapshot
            # What is kept here may be what was replaced: it is lost if this ends early.
            self._snapshot = None
            asked = OneModel(self.client)
            if cached is None:
                cached = read_words(self.client, asked)
            if vectors:
                cached.read_vectors(asked)
            self.note(cached.generation)
            self._snapshot = cached
            return cached
