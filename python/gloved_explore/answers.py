"""What the page of explore may ask, and the answers as it shows them.

Each question is a function of the form's fields. Its result is an object for JSON: results, points
of a map, lines and arrows between them, and facts. Words come as text to show and as text to type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from gloved import _snapshot, requests
from gloved._command import visible
from gloved._one_model import OneModel, of_one_model
from gloved._vectors import numpy
from gloved._wire import parse_reply, quote
from gloved.client import Client
from gloved.errors import GlovedError, TooLong, UnknownWord
from gloved.requests import Expression
from gloved.results import Answer, Info, Neighbor

from . import projection

MAX_K = 200
_MAX_TERMS = 100
_COMPLETIONS = 8

Fields = Mapping[str, str]
Object = Dict[str, Any]

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"{_QUOTED}(?=[ \t]|$)|[^ \t]+")
# The terms of an expression as an audit repeats it: every word in quotes, no parentheses.
_TERM = re.compile(rf"(?:^| )(?:([+-]) )?(?:([0-9.e+-]+) \* )?({_QUOTED})")
_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|(["\\]))')


class Unfinished(ValueError):
    """Text that somebody is still typing."""


def typed(word: str) -> str:
    """The word as it is typed in an expression: in quotes only if it needs them."""
    if word.isprintable() and " " not in word and word[0] != '"' and word not in "+-*()":
        return word
    escaped = (f"\\x{ord(each) - 0xDC00:02x}" if "\udc80" <= each <= "\udcff" else each
               for each in quote(word))
    return "".join(escaped)


def _unescaped(escape: re.Match[str]) -> str:
    if escape[2]:
        return escape[2]
    byte = int(escape[1], 16)
    return chr(byte if byte < 0x80 else 0xDC00 + byte)


def _unquoted(token: str) -> str:
    if not token.startswith('"'):
        return token
    if len(token) < 2 or not re.fullmatch(_QUOTED, token):
        raise Unfinished(f"{token}: a quote has no end")
    data = re.sub(_ESCAPE, _unescaped, token[1:-1])
    # Escaped bytes may be UTF-8.
    return data.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _is_spelling(token: str, word: str) -> bool:
    """Whether the token is that word, in quotes or without."""
    try:
        return _unquoted(token) == word
    except ValueError:
        return False


def _words(text: str) -> List[str]:
    return [_unquoted(token) for token in _TOKEN.findall(text)]


def _word(fields: Fields, name: str) -> str:
    words = _words(fields.get(name, ""))
    if len(words) != 1:
        raise ValueError(f"one word is wanted for {name}, not {len(words)}")
    return words[0]


def _expression(fields: Fields, name: str) -> Expression:
    text = fields.get(name, "").strip()
    if not text:
        raise Unfinished("there is no word")
    tokens = _TOKEN.findall(text)
    open_groups = 0
    for token in tokens:
        _unquoted(token)
        open_groups += {"(": 1, ")": -1}.get(token, 0)
        if open_groups < 0:
            # The request puts all in parentheses, so the daemon would not see this.
            raise ValueError("a ')' without its '('")
    # Else the daemon would tell of the parenthesis that follows there.
    if tokens[-1] in ("+", "-", "*", "("):
        raise Unfinished(f"a word follows after {tokens[-1]}")
    if open_groups > 0:
        raise Unfinished("a ')' is missing")
    return Expression(text)


def _number(fields: Fields, name: str, least: int, most: int) -> Optional[int]:
    text = fields.get(name, "")
    if not text:
        return None
    if not re.fullmatch("[0-9]{1,10}", text) or not least <= int(text) <= most:
        raise ValueError(f"{name} is a number from {least} to {most}, not {text}")
    return int(text)


def _shown(word: str) -> Object:
    return {"word": visible(word), "typed": typed(word)}


@dataclass
class _Map:
    """Words whose vectors are drawn; the sum of the first ones may be drawn too."""

    words: List[str] = field(default_factory=list)
    weights: List[float] = field(default_factory=list)
    """Of the first words in the query, if there is one."""
    asked: int = 0
    """How many of the first words were asked for."""
    arrows: List[Tuple[int, int]] = field(default_factory=list)


def _map_of(
    asked: Sequence[str], found: Answer[Neighbor], weights: Sequence[float] = ()
) -> _Map:
    """The words that were asked for, then those of the answer, each once."""
    words = [*asked, *(each.word for each in found)]
    return _Map(list(dict.fromkeys(words)), list(weights), len(set(asked)))


def _points(one_model: OneModel, model: Optional[str], drawn: _Map) -> Object:
    """The places of the words, and of their sum, on a plane."""
    empty: Object = {"points": [], "arrows": [], "caption": ""}
    if not drawn.words:
        return empty
    try:
        vectors = one_model.ask(
            requests.vec(drawn.words, model=model, unknown="error", case="ignore")
        )
    except TooLong:
        return empty
    points: List[Object] = [
        {**_shown(word), "asked": number < drawn.asked}
        for number, word in enumerate(drawn.words)
    ]
    if len(drawn.weights) > 1 or any(each < 0 for each in drawn.weights):
        rows = numpy.asarray(vectors, dtype="f8")
        query = numpy.asarray(drawn.weights) @ rows[: len(drawn.weights)]
        vectors = numpy.vstack([rows, query])
        points.append({"word": "", "typed": "", "asked": True})
    drawing = projection.by_components(vectors)
    for point, (x, y) in zip(points, drawing.points):
        point["x"], point["y"] = round(float(x), 6), round(float(y), 6)
    return {"points": points, "arrows": drawn.arrows, "caption": drawing.caption}


def _terms(info: Info) -> Tuple[List[str], List[float]]:
    """The words of an expression, each once, and their weights in its sum."""
    request = parse_reply(info.audit)["request"] if info.audit else ""
    weights: Dict[str, float] = {}
    for sign, number, word in _TERM.findall(request):
        name = _unquoted(word)
        name = info.replaced.get(name, name)
        weight = float(number or 1) * (-1 if sign == "-" else 1)
        weights[name] = weights.get(name, 0.0) + weight
    return list(weights), list(weights.values())


def _results(answer: Answer[Neighbor]) -> List[Object]:
    return [
        {**_shown(each.word), "score": each.score, "rank": each.rank} for each in answer
    ]


def _about(info: Info) -> Object:
    return {
        "model": visible(info.model),
        "rows": info.rows,
        "generation": info.generation,
        "us": info.us,
        "replaced": [[visible(a), visible(b)] for a, b in info.replaced.items()],
    }


class Answers:
    """Asks a daemon. Threads may share it.

    default_model  the model that is asked unless the form names one
    """

    def __init__(self, client: Client, default_model: Optional[str] = None) -> None:
        self._client = client
        self._default_model = default_model
        self.questions: Dict[str, Callable[[OneModel, Fields], Object]] = {
            "models": self._models,
            "near": self._near,
            "analogy": self._analogy,
            "odd": self._odd,
            "sim": self._sim,
        }
        """All that the page may ask, by name."""

    def _model(self, fields: Fields) -> Optional[str]:
        return fields.get("model") or self._default_model

    def _look_up_options(self, fields: Fields) -> Dict[str, Any]:
        return {"model": self._model(fields), "case": "ignore"}

    def _search_options(self, fields: Fields) -> Dict[str, Any]:
        return {
            **self._look_up_options(fields),
            "k": _number(fields, "k", 1, MAX_K),
            "top": _number(fields, "top", 1, 2**31),
            "fields": ("rank",),
        }

    def _models(self, one_model: OneModel, fields: Fields) -> Object:
        models = self._client.models()
        return {
            "default": self._default_model or (models[0].model if models else ""),
            "models": [
                {"model": each.model, "rows": each.rows, "dim": each.dim} for each in models
            ],
        }

    def _near(self, one_model: OneModel, fields: Fields) -> Object:
        options = self._search_options(fields)
        answer = one_model.ask(
            requests.near(_expression(fields, "q"), **options, unknown="error", certify=True)
        )
        words, weights = _terms(answer.info)
        if len(words) > _MAX_TERMS:
            words, weights = [], []
        return self._searched(one_model, fields, answer, _map_of(words, answer, weights))

    def _analogy(self, one_model: OneModel, fields: Fields) -> Object:
        asked = [_word(fields, name) for name in "abc"]
        answer = one_model.ask(requests.analogy(*asked, **self._search_options(fields)))
        words = [answer.info.replaced.get(word, word) for word in asked]
        drawn = _map_of(words, answer)
        ends = [*words, *(each.word for each in answer[:1])]
        numbers = [drawn.words.index(word) for word in ends]
        drawn.arrows = list(zip(numbers[::2], numbers[1::2]))
        return self._searched(one_model, fields, answer, drawn)

    def _searched(
        self, one_model: OneModel, fields: Fields, answer: Answer[Neighbor], drawn: _Map
    ) -> Object:
        return {
            "results": _results(answer),
            **_about(answer.info),
            **_points(one_model, self._model(fields), drawn),
        }

    def _has(
        self, one_model: OneModel, fields: Fields, words: Sequence[str]
    ) -> Tuple[List[str], List[int], Info]:
        """The model's words for those that were typed, each once, and their ranks."""
        if not words:
            raise Unfinished("there is no word")
        options = self._look_up_options(fields)
        has = one_model.ask(requests.has(words, fields=("rank",), **options))
        for each in has:
            if not each.known:
                # Raises, with words that are spelt alike.
                one_model.ask(requests.vec([each.word], unknown="error", **options))
        found = _snapshot.listed_names(has)
        if has.info.unlisted:
            found = _snapshot.names(one_model, words, **options)
        ranks = {name: each.rank or 0 for name, each in zip(found, has) if name is not None}
        return list(ranks), list(ranks.values()), has.info

    def _odd(self, one_model: OneModel, fields: Fields) -> Object:
        words = _words(fields.get("words", ""))
        if len(words) > MAX_K:
            raise ValueError(f"at most {MAX_K} words are compared, not {len(words)}")
        names, ranks, info = self._has(one_model, fields, words)
        if len(names) < 3:
            raise Unfinished("three different words are wanted, or more")
        options = self._look_up_options(fields)
        odd = one_model.ask(requests.odd(names, **options))
        # The score of ODD is the cosine to the sum of all, each divided by its length.
        scores = one_model.ask_all(
            requests.sim(name, names, norm="unit", **options) for name in names
        )
        results = [
            {**_shown(name), "score": score, "rank": rank}
            for score, name, rank in zip(scores, names, ranks)
        ]
        return {
            "results": sorted(results, key=lambda each: float(each["score"])),
            "facts": [[visible(odd.word), "does not match the others"]],
            **_about(info),
            **_points(one_model, self._model(fields), _Map(names, asked=len(names))),
        }

    def _sim(self, one_model: OneModel, fields: Fields) -> Object:
        asked = (_word(fields, "a"), _word(fields, "b"))
        names, _, info = self._has(one_model, fields, asked)
        a, b = names[0], names[-1]
        options = self._look_up_options(fields)
        search = self._search_options(fields)
        cosine = one_model.ask(requests.sim(a, b, **options))
        distance = one_model.ask(requests.dist(a, b, **options))
        facts: List[List[str]] = [
            [f"{cosine:.6f}", "cosine"],
            [f"{distance:.6f}", "squared distance"],
        ]
        if a != b:
            for begin, end in ((a, b), (b, a)):
                place = one_model.ask(requests.rank(begin, end, top=search["top"], **options))
                facts.append(
                    [f"{place:,}", f"place of {visible(end)} among neighbours of {visible(begin)}"]
                )
        answer = one_model.ask(requests.near([a, b], norm="unit", **search))
        return {
            **self._searched(one_model, fields, answer, _map_of(names, answer)),
            "facts": facts,
            "replaced": _about(info)["replaced"],
        }

    def _alike(self, model: Optional[str], error: UnknownWord) -> List[Object]:
        """Words that begin with an unknown one, then those that are spelt alike."""
        words: List[str] = []
        for begin in filter(None, dict.fromkeys((error.word, error.word.lower()))):
            found = self._client.prefix(begin, k=_COMPLETIONS, model=model)
            words += [each.word for each in found]
        return [_shown(word) for word in dict.fromkeys([*words, *error.suggestions])]

    def ask(self, question: str, fields: Fields) -> Object:
        """The answer, or an object with "error". KeyError: the page may not ask that."""
        answer = self.questions[question]
        try:
            model = self._model(fields)
            try:
                return of_one_model(
                    lambda: OneModel(self._client, model), lambda asked: answer(asked, fields)
                )
            except UnknownWord as error:
                return {
                    "error": visible(error.message),
                    "unknown": [
                        token
                        for text in fields.values()
                        for token in _TOKEN.findall(text)
                        if _is_spelling(token, error.word)
                    ],
                    "instead": self._alike(model, error),
                }
        except Unfinished as error:
            return {"error": visible(str(error)), "unfinished": True}
        except (GlovedError, ValueError) as error:
            return {"error": visible(str(error))}
