"""What is taken out of replies: their types and ranges are checked here, and nowhere else.

A peer may send anything. For what the protocol does not have, these functions raise an error, which
a Conversation tells as Internal. So take values out of a reply by them alone, and in a Request's
`read`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from ._vectors import MAX_DIM
from .errors import GlovedError, UnknownWord, class_of_code
from .results import Answer, Info, Model, Neighbor, Odd, Ranked, Word, WordList

Reply = Dict[str, Any]
Members = Dict[str, Any]

# The largest model that the format has.
MAX_ROWS = 2**32 - 2

_MAX_WHOLE = 2**64 - 1
_MAX_K = 2**32 - 1


# One value


def text(value: Any) -> str:
    """A str that stands for bytes."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    if not value.isascii():
        # Half of a surrogate pair stands for no byte.
        value.encode("utf-8", "surrogateescape")
    return value


def word(value: Any) -> str:
    """A word or a name, which a request may have."""
    if value == "":
        raise ValueError("an empty word")
    return text(value)


def whole(value: Any, least: int = 0, most: int = _MAX_WHOLE) -> int:
    """A whole number in a range."""
    # A bool is an int, too.
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r:.80} is no whole number from {least} to {most}")
    return value


def number(value: Any) -> float:
    """A float. JSON has 1 for 1.0, and null for a number of a damaged model that is not finite."""
    if value is None:
        return math.nan
    if type(value) is not float and type(value) is not int:
        raise TypeError(f"{value!r:.80} is no number")
    return float(value)


def flag(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.80} is neither true nor false")
    return value


def _items(value: Any) -> List[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.80} is no list")
    return value


def _objects(value: Any) -> List[Members]:
    if not all(isinstance(each, dict) for each in _items(value)):
        raise TypeError(f"{value!r:.80} is no list of objects")
    return value  # type: ignore[no-any-return]


# Parts of a reply


def results(reply: Reply) -> List[Members]:
    """All results."""
    return _objects(reply["results"])


def result(reply: Reply) -> Members:
    """The one result."""
    (only,) = results(reply)
    return only


def results_of_words(reply: Reply, asked: int, may_skip: bool = False) -> List[Members]:
    """The results of so many words. Some of the words may have been left out."""
    found = results(reply)
    skips = may_skip and ("skipped" in reply or "unlisted" in reply)
    if len(found) > asked or (len(found) < asked and not skips):
        raise ValueError(f"{len(found)} results for {asked} words")
    return found


def rows(reply: Reply) -> int:
    """How many words the model has."""
    return whole(reply["rows"], 1, MAX_ROWS)


def generation(reply: Reply) -> str:
    """The content of the model that answered."""
    return text(reply["generation"])


def _optional(read: Callable[[Any], Any], members: Members, name: str) -> Any:
    return read(members[name]) if name in members else None


_CERTIFICATE: Dict[str, Callable[[Any], Any]] = {
    "pass": text,
    "scanned": whole,
    "survivors": whole,
    "rescored": whole,
    "kth": lambda value: None if value is None else number(value),
    "rejected_below": lambda value: None if value is None else number(value),
}


def _audit(reply: Reply) -> Optional[bytes]:
    # The line itself, which a Conversation adds.
    text(reply.get("request", ""))
    audit: Optional[bytes] = reply.get("audit")
    return audit


def info(reply: Reply) -> Info:
    """Where an answer comes from."""
    certificate = None
    if "pass" in reply:
        certificate = {
            name: read(reply[name]) for name, read in _CERTIFICATE.items() if name in reply
        }
    return Info(
        model=word(reply["model"]),
        rows=rows(reply),
        generation=generation(reply),
        us=whole(reply["us"]),
        engine=_optional(text, reply, "engine"),
        certificate=certificate,
        skipped=tuple(map(word, _items(reply.get("skipped", [])))),
        audit=_audit(reply),
        replaced={
            word(each["word"]): word(each["by"]) for each in _objects(reply.get("replaced", []))
        },
        unlisted=whole(reply.get("unlisted", 0)),
    )


def error(reply: Reply) -> GlovedError:
    """The error that an object with "ok": false tells of."""
    code = text(reply.get("code", "internal"))
    message = text(reply.get("message", ""))
    if code == UnknownWord.code:
        missing = text(reply.get("word", ""))
        alike = [word(each) for each in _items(reply.get("suggestions", []))]
        return UnknownWord(message, missing, alike)
    told = class_of_code(code)(message)
    if told.code != code:
        told.code = code
    return told


# Answers of verbs


def _fields(each: Members) -> Tuple[Optional[int], Optional[int], Optional[float]]:
    return (
        _optional(_row, each, "row"),
        _optional(_row, each, "rank"),
        _optional(number, each, "norm"),
    )


def _row(value: Any) -> int:
    return whole(value, 0, MAX_ROWS - 1)


# Members that are not known here are ignored: a later daemon may have more.


def neighbors(reply: Reply) -> Answer[Neighbor]:
    """Of a search."""
    return Answer(
        [
            Neighbor(word(each["word"]), number(each["score"]), *_fields(each))
            for each in results(reply)
        ],
        info(reply),
    )


def hits(reply: Reply) -> List[Tuple[str, float]]:
    """Of a search: words and scores alone."""
    return [(word(each["word"]), number(each["score"])) for each in results(reply)]


def closer(reply: Reply) -> List[str]:
    """Of a search with ranks: the words that are better than the last one, by rank."""
    found = [(_row(each["rank"]), *hit) for each, hit in zip(results(reply), hits(reply))]
    limit = min(score for _, _, score in found)
    return [name for _, name, score in sorted(found) if score > limit]


def words(reply: Reply, asked: Optional[int] = None) -> Answer[Word]:
    """Of PREFIX, which has known words alone, or of HAS for so many words."""
    found = results(reply) if asked is None else results_of_words(reply, asked)
    return Answer(
        [
            Word(
                word(each["word"]),
                flag(each.get("known", True)),
                *_fields(each),
                _optional(flag, each, "within"),
            )
            for each in found
        ],
        info(reply),
    )


def ranks(reply: Reply) -> List[Tuple[int, str]]:
    """Of PREFIX or HAS with ranks: the known words, each after its rank."""
    return [
        (whole(each["rank"], 0, rows(reply) - 1), word(each["word"]))
        for each in results(reply)
        if flag(each.get("known", True))
    ]


def score(reply: Reply) -> float:
    """Of SIM."""
    return number(result(reply)["score"])


def distance(reply: Reply) -> float:
    """Of DIST."""
    return number(result(reply)["distance"])


def place(reply: Reply) -> int:
    """Of RANK. A group comes after all words."""
    return whole(result(reply)["rank"], 1, rows(reply) + 1)


def ranked(reply: Reply) -> Ranked:
    """Of RANK with fields."""
    only = result(reply)
    return Ranked(place(reply), number(only["score"]), flag(only["eligible"]))


def odd(reply: Reply) -> Odd:
    """Of ODD."""
    only = result(reply)
    return Odd(word(only["word"]), number(only["score"]))


def numbers(reply: Reply, member: str, asked: int) -> List[List[float]]:
    """Of MATRIX."""
    found = [
        [number(each) for each in _items(each[member])]
        for each in results_of_words(reply, asked, may_skip=True)
    ]
    if any(len(row) != len(found) for row in found):
        raise ValueError("a matrix that is not square")
    return found


def vectors(reply: Reply, asked: int, may_skip: bool) -> Iterable[str]:
    """Of VEC, in base64."""
    return [text(each["vector_base64"]) for each in results_of_words(reply, asked, may_skip)]


def lists(reply: Reply) -> List[WordList]:
    """Of LISTS."""
    return [
        WordList(
            word(each["list"]),
            whole(each["words"]),
            whole(each["missing"]),
            text(each["checksum"]),
            whole(each.get("replaced", 0)),
            text(each.get("origin", "")),
        )
        for each in results(reply)
    ]


def models(reply: Reply) -> List[Model]:
    """Of MODELS and RELOAD."""
    return [
        Model(
            word(each["model"]),
            rows(each),
            whole(each["dim"], 1, MAX_DIM),
            generation(each),
            text(each["engine"]),
        )
        for each in results(reply)
    ]


def max_k(reply: Reply) -> int:
    """Of STATS: how many words an answer may have."""
    return whole(result(reply)["max_k"], 1, _MAX_K)


def stored_neighbors(reply: Reply) -> int:
    """Of STATS: how many neighbours of each word are stored."""
    return whole(result(reply)["neighbors_k"])


def shown_lines(reply: Reply) -> List[str]:
    """Of HELP, and STATS in Prometheus's format."""
    return [text(each["line"]) for each in results(reply)]
