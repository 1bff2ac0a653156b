"""What a picture of a neighbourhood shows: words, their vectors, and which belong together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from gloved import requests
from gloved._one_model import OneModel, of_one_model
from gloved._snapshot import has, names, rows
from gloved.client import Client

Analogy = Tuple[str, str, str]


@dataclass(frozen=True)
class Place:
    """A word of a picture."""

    word: str
    group: int
    """The number of the asked word or of the analogy that it belongs to; -1 for none."""
    is_asked: bool
    rank: int


@dataclass
class Neighborhood:
    """Words with their vectors, and what is drawn between them."""

    places: List[Place] = field(default_factory=list)
    vectors: Any = None
    """float32, shape (places, dim)."""
    links: List[Tuple[int, int, float]] = field(default_factory=list)
    """From an asked word to a neighbour, with their cosine."""
    arrows: List[Tuple[int, int]] = field(default_factory=list)
    """Of analogies: a to b, and c to the answer."""
    model: str = ""
    generation: str = ""
    skipped: List[str] = field(default_factory=list)
    """Words that were left out, because the model does not have them."""
    replaced: Dict[str, str] = field(default_factory=dict)
    """Words for which others were taken, and those."""


class _Gatherer:
    def __init__(self, one_model: OneModel, unknown: Optional[str], case: Optional[str]) -> None:
        self._model = one_model
        self._unknown = unknown
        self._case = case
        # The number of each word, in order.
        self._numbers: Dict[str, int] = {}
        self._groups: List[int] = []
        self._asked: List[bool] = []
        self.found = Neighborhood()

    def add(self, word: str, group: int, is_asked: bool) -> int:
        """The number of the word, which is new or not. The first group stays."""
        number = self._numbers.setdefault(word, len(self._numbers))
        if number == len(self._groups):
            self._groups.append(group)
            self._asked.append(False)
        self._asked[number] |= is_asked
        return number

    def known(self, words: Sequence[str]) -> List[str]:
        """The model's words for those that were typed, without those that are skipped."""
        found = dict(zip(words, names(self._model, words, case=self._case)))
        missing = [word for word, name in found.items() if name is None]
        taken = {word: name for word, name in found.items() if name is not None}
        self.found.replaced.update(
            (word, name) for word, name in taken.items() if name != word
        )
        if missing and self._unknown != "skip":
            # Raises, with words that are spelt alike, unless the daemon's options skip them.
            asked = [*taken][:1] + missing[:1]
            self._model.ask(requests.vec(asked, unknown=self._unknown, case=self._case))
        self.found.skipped += missing
        return list(dict.fromkeys(taken.values()))

    def add_neighbors(self, words: Sequence[str], k: int) -> None:
        groups = [self.add(word, group, True) for group, word in enumerate(words)]
        if k == 0:
            return
        answers = self._model.ask_all(
            requests.near(word, k=k, unknown="error", case="exact") for word in words
        )
        for group, (answer, asked) in enumerate(zip(answers, groups)):
            for neighbor in answer:
                other = self.add(neighbor.word, group, False)
                self.found.links.append((asked, other, neighbor.score))

    def add_analogies(self, analogies: Iterable[Analogy], group: int) -> None:
        for a, b, c in analogies:
            answer = self._model.ask(requests.analogy(a, b, c, k=1, case=self._case))
            self.found.replaced.update(answer.info.replaced)
            words = [answer.info.replaced.get(word, word) for word in (a, b, c)]
            words += [each.word for each in answer]
            numbers = [self.add(word, group, True) for word in words]
            self.found.arrows += list(zip(numbers[::2], numbers[1::2]))
            group += 1

    def finish(self) -> Neighborhood:
        found = self.found
        words = list(self._numbers)
        if not words:
            raise ValueError("there is no word to draw")
        ranks: List[int] = []
        for answer, _ in has(self._model, words, fields="rank", case="exact"):
            found.model, found.generation = answer.info.model, answer.info.generation
            ranks += [each.rank or 0 for each in answer]
        found.places = list(map(Place, words, self._groups, self._asked, ranks))
        found.vectors = rows(self._model, words)
        return found


def gather(
    client: Client,
    words: Sequence[str],
    *,
    k: int = 10,
    extra: Sequence[str] = (),
    analogies: Sequence[Analogy] = (),
    unknown: Optional[str] = None,
    case: Optional[str] = None,
) -> Neighborhood:
    """The words, k neighbours of each, extra words, and the words of analogies with their answers.

    unknown and case say how words are found, as in gloved.requests. All of it is of one model.
    UnknownWord: the model does not have a word. ValueError: there is no word. ModelReplaced: that
    happened again and again meanwhile.
    """

    def ask(one_model: OneModel) -> Neighborhood:
        gatherer = _Gatherer(one_model, unknown, case)
        gatherer.add_neighbors(gatherer.known(words), k)
        for word in gatherer.known(extra):
            gatherer.add(word, -1, True)
        gatherer.add_analogies(analogies, len(words))
        return gatherer.finish()

    return of_one_model(lambda: OneModel(client), ask)
