"""What the daemon's answers are in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, TypeVar

T = TypeVar("T")


class Neighbor(NamedTuple):
    """A word of an answer and its score; the other fields if fields= asked for them."""

    word: str
    score: float
    row: Optional[int] = None
    rank: Optional[int] = None
    norm: Optional[float] = None


class Word(NamedTuple):
    """A word that may be in the model; the other fields if it is, and fields= asked for them.

    within: whether the lists have the word, if has() named some.
    """

    word: str
    known: bool
    row: Optional[int] = None
    rank: Optional[int] = None
    norm: Optional[float] = None
    within: Optional[bool] = None


class Ranked(NamedTuple):
    """A word or group b beside another, a."""

    rank: int
    """The position of b among the neighbours of a: 1 if it is the nearest."""
    score: float
    """The cosine of a and b."""
    eligible: bool
    """Whether b is a word that the filters of the request take."""


class Odd(NamedTuple):
    """The word or group that does not match the others, and its cosine to their sum."""

    word: str
    score: float


class Model(NamedTuple):
    """A model of the daemon."""

    model: str
    rows: int
    dim: int
    generation: str
    engine: str


class WordList(NamedTuple):
    """A list of words that a search may name: words that the model has, and that it has not."""

    list: str
    words: int
    missing: int
    checksum: str
    """Of the words that the model has: the same for lists that give the same answers."""
    replaced: int = 0
    """How many of its words were taken in another case or form (`--case ignore`)."""
    origin: str = ""
    """"file", or "pipe"; "kept" if the last RELOAD could not read it, so that it is as before."""


@dataclass(frozen=True)
class Info:
    """Where an answer comes from."""

    model: str
    rows: int
    generation: str
    """The model's content: changes when the content changes."""
    us: int
    """Microseconds from reading the request to having its answer, in the daemon."""
    engine: Optional[str] = None
    certificate: Optional[Dict[str, Any]] = field(default=None, hash=False)
    """With certify=True: pass, scanned, survivors, rescored, kth and rejected_below."""
    audit: Optional[bytes] = None
    """With certify=True: the daemon's reply, a line of JSON, for gloved-verify --audit. None if the
    request is too long for it (docs/audit.md)."""
    skipped: Tuple[str, ...] = ()
    """With unknown="skip": words that were left out."""
    replaced: Mapping[str, str] = field(default_factory=dict, hash=False)
    """With case="ignore": words for which others were taken, and those."""
    unlisted: int = 0
    """How many more words of the request, repetitions counted, were left out or replaced: at most
    64 words of 1,024 bytes in all are named."""


class Answer(List[T]):
    """A list of results, and where they come from."""

    def __init__(self, results: List[T], info: Info) -> None:
        super().__init__(results)
        self.info = info
