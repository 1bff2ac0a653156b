"""One function a verb: each returns a Request, which Client and AsyncClient ask.

`client.near("king")` is `client.ask(requests.near("king"))`. Use the functions themselves for
pipelines: `client.ask_all(requests.near(word) for word in words)`.

Arguments that many of them take:

k         how many words to return; the daemon's --max-k is the most (65,536)
min       only words with at least this score
top       only the most frequent `top` words
prefix    only words that start with this text
engine    the engine that answers, such as "cpu"; all give the same answers
model     another model of the daemon than the connection's
unknown   "skip" leaves out words that the model does not have, "error" raises UnknownWord
case      "ignore" takes a word of the model that differs in case alone, "exact" does not
fields    what else to tell of each word: "row", "rank" (0 is the most frequent word), "norm"
within    names of lists (see lists): only words that are in all of them
without   names of lists: only words that are in none of them
only      words to choose among: all others are left out of the answer. No engine is asked then
certify   also tells how the answer was found, in info.certificate, and keeps the reply for others
          to check, in info.audit

Without unknown and case it is as the daemon's options say: "error" and "exact" unless its operator
chose. Answers tell which words were left out or replaced in info.skipped and info.replaced.

Names of lists and fields are a list of them, or one str with commas between.

A TypeError or ValueError that names an argument means that no request can have it: then nothing is
sent. Whatever else an argument holds is sent as one word or one value.

A word is a str. Its bytes that are not UTF-8 are surrogates, as Python's "surrogateescape" puts
them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Tuple,
    Union,
)

from . import _reply, _vectors
from ._wire import Request, encode, items, line, number, token
from .results import Answer, Model, Neighbor, Odd, Ranked, Word, WordList

if TYPE_CHECKING:
    from ._vectors import Vector

__all__ = [
    "Expression",
    "Request",
    "analogy",
    "dist",
    "has",
    "help",
    "lists",
    "matrix",
    "models",
    "near",
    "near_vector",
    "odd",
    "ping",
    "prefix",
    "prometheus",
    "rank",
    "ranked",
    "reload",
    "sim",
    "stats",
    "vec",
]


@dataclass(frozen=True)
class Expression:
    """Text in gloved's language of expressions, such as "2 * paris - ( france - germany )".

    Words with spaces around + - * ( ) need no quotes. Do not put words of strangers into it: use a
    list of words, or of pairs of a word and its weight, instead.
    """

    text: str


Terms = Union[str, Expression, Iterable[Union[str, Tuple[str, float]]]]
"""A word; a list of words, and of pairs of a word and its weight, which are added; or an
Expression. Where words are compared, the last two are a group of words."""


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(?=[ \t]|$)|[^" \t][^ \t]*')


def _group(name: str, text: str) -> List[str]:
    """An expression in parentheses: there a first token like k=3 is a word.

    ValueError: it is not one line, or it would end the parentheses.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name}: the text of an Expression is a str, not {type(text).__name__}")
    if set(text) & set("\n\r\0"):
        raise ValueError(f"{name}: an expression is one line, without NUL")
    tokens = _TOKEN.findall(text)
    if not tokens:
        raise ValueError(f"{name}: the expression has no word")
    if re.sub(_TOKEN, "", text).strip(" \t"):
        raise ValueError(f"{name}: a quote of the expression has no end, or no space behind it")
    depth = 0
    for each in tokens:
        depth += {"(": 1, ")": -1}.get(each, 0)
        if depth < 0:
            break
    if depth != 0:
        raise ValueError(f"{name}: the parentheses of the expression do not match")
    try:
        encode(text)
    except UnicodeEncodeError:
        raise ValueError(f"{name} has half of a surrogate pair, which stands for no byte") from None
    return ["(", text, ")"]


_TERMS = "a word, an Expression, or a list of words and of pairs (word, weight)"


def _tokens(name: str, terms: Terms) -> List[str]:
    if isinstance(terms, Expression):
        return _group(name, terms.text)
    if isinstance(terms, str):
        return [token(name, terms)]
    if isinstance(terms, Mapping):
        raise TypeError(f"{name} is {_TERMS}: the items() of a dict, not the dict")
    tokens: List[str] = []
    for each in items(name, terms, _TERMS):
        if isinstance(each, str):
            word, weight = each, 1.0
        elif isinstance(each, (tuple, list)) and len(each) == 2:
            word, weight = each[0], number(f"{name}: a weight", each[1])
        else:
            raise TypeError(f"{name} is {_TERMS}; one item is a {type(each).__name__}")
        if weight < 0:
            tokens.append("-")
        elif tokens:
            tokens.append("+")
        if abs(weight) != 1:
            tokens += (repr(abs(weight)), "*")
        tokens.append(token(f"{name}: a word", word))
    if not tokens:
        raise ValueError(f"{name}: there is no word to search with")
    return tokens


def _word_list(name: str, words: Iterable[str]) -> List[str]:
    """Words as tokens."""
    tokens = [token(f"{name}: a word", word) for word in items(name, words, "a list of words")]
    if not tokens:
        raise ValueError(f"{name}: the list of words is empty")
    return tokens


def _argument(name: str, terms: Terms) -> List[str]:
    """A word, or a group in parentheses."""
    tokens = _tokens(name, terms)
    return tokens if isinstance(terms, (str, Expression)) else ["(", *tokens, ")"]


def _search_options(
    top: Optional[int],
    prefix: Optional[str],
    within: Iterable[str],
    without: Iterable[str],
    engine: Optional[str],
    model: Optional[str],
) -> List[Tuple[str, object]]:
    """Which words are searched, and by what."""
    return [
        ("top", top),
        ("prefix", prefix),
        ("within", within),
        ("without", without),
        ("engine", engine),
        ("model", model),
    ]


def _answer_options(
    k: Optional[int], min: Optional[float], fields: Iterable[str], certify: bool
) -> List[Tuple[str, object]]:
    """What an answer has."""
    return [("k", k), ("min", min), ("fields", fields), ("certify", certify)]


def _search(
    verb: str,
    options: List[Tuple[str, object]],
    only: Optional[Iterable[str]],
    tokens: List[str],
) -> Request[Answer[Neighbor]]:
    """The request, whose answer is among the words of only, if there are some."""
    if only is not None:
        chosen = _word_list("only", only)
        options = [*options, ("only", len(chosen))]
        tokens = chosen + tokens
    return Request(line(verb, options, tokens), _reply.neighbors)


def _look_up_options(unknown: Optional[str], case: Optional[str]) -> List[Tuple[str, object]]:
    return [("unknown", unknown), ("case", case)]


def _group_options(
    norm: Optional[str], unknown: Optional[str], case: Optional[str], model: Optional[str]
) -> List[Tuple[str, object]]:
    """Of verbs that compare words and groups, and search for none."""
    return [("norm", norm), *_look_up_options(unknown, case), ("model", model)]


def near(
    terms: Terms,
    *,
    k: Optional[int] = None,
    min: Optional[float] = None,
    top: Optional[int] = None,
    prefix: Optional[str] = None,
    within: Iterable[str] = (),
    without: Iterable[str] = (),
    only: Optional[Iterable[str]] = None,
    norm: Optional[str] = None,
    exclude: Optional[str] = None,
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    engine: Optional[str] = None,
    model: Optional[str] = None,
    fields: Iterable[str] = (),
    certify: bool = False,
) -> Request[Answer[Neighbor]]:
    """The words nearest to a sum of words by cosine, best first: 10 unless k says how many.

    terms is a word, a list of words and of (word, weight), or an Expression. norm="unit" divides
    each vector by its length before adding. exclude="none" lets the words of terms into the
    answer.

    UnknownWord: a word of terms or of only is not in the model. ZeroVector: the sum is zero.
    UnknownList: the model does not have a list.
    """
    options = _search_options(top, prefix, within, without, engine, model)
    options += _answer_options(k, min, fields, certify)
    options += [("norm", norm), ("exclude", exclude), *_look_up_options(unknown, case)]
    return _search("NEAR", options, only, _tokens("terms", terms))


def near_vector(
    vector: Vector,
    *,
    k: Optional[int] = None,
    min: Optional[float] = None,
    top: Optional[int] = None,
    prefix: Optional[str] = None,
    within: Iterable[str] = (),
    without: Iterable[str] = (),
    engine: Optional[str] = None,
    model: Optional[str] = None,
    fields: Iterable[str] = (),
    certify: bool = False,
) -> Request[Answer[Neighbor]]:
    """The words nearest to a vector by cosine, best first. The vector is rounded to float32.

    BadRequest: it has another length than the model's, or is not finite. ZeroVector: it is zero.
    """
    options = _search_options(top, prefix, within, without, engine, model)
    options += _answer_options(k, min, fields, certify)
    options.append(("base64", _vectors.to_base64(vector)))
    return Request(line("NEARVEC", options, ()), _reply.neighbors)


def analogy(
    a: str,
    b: str,
    c: str,
    *,
    method: Optional[str] = None,
    k: Optional[int] = None,
    min: Optional[float] = None,
    top: Optional[int] = None,
    prefix: Optional[str] = None,
    within: Iterable[str] = (),
    without: Iterable[str] = (),
    only: Optional[Iterable[str]] = None,
    case: Optional[str] = None,
    engine: Optional[str] = None,
    model: Optional[str] = None,
    fields: Iterable[str] = (),
    certify: bool = False,
) -> Request[Answer[Neighbor]]:
    """What is to c as b is to a: `analogy("man", "king", "woman")` begins with queen.

    method is "add" (3CosAdd, the default) or "mul" (3CosMul, Levy and Goldberg, 2014).
    """
    options = _search_options(top, prefix, within, without, engine, model)
    options += _answer_options(k, min, fields, certify)
    options += [("method", method), ("case", case)]
    return _search("ANALOGY", options, only, [token("a", a), token("b", b), token("c", c)])


def rank(
    a: Terms,
    b: Terms,
    *,
    top: Optional[int] = None,
    prefix: Optional[str] = None,
    within: Iterable[str] = (),
    without: Iterable[str] = (),
    norm: Optional[str] = None,
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    engine: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[int]:
    """The position of b among the neighbours of a: 1 if it is the nearest.

    a and b may be groups of words. The words of a group a are left out; a group b comes after all
    words that are at least as near. norm="unit" divides each vector by its length before adding.
    """
    options = _search_options(top, prefix, within, without, engine, model)
    options += [("norm", norm), *_look_up_options(unknown, case)]
    tokens = [*_argument("a", a), *_argument("b", b)]
    return Request(line("RANK", options, tokens), _reply.place)


def ranked(
    a: Terms,
    b: Terms,
    *,
    top: Optional[int] = None,
    prefix: Optional[str] = None,
    within: Iterable[str] = (),
    without: Iterable[str] = (),
    norm: Optional[str] = None,
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    engine: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[Ranked]:
    """The position of b among the neighbours of a, their cosine, and whether the filters take b.

    Arguments as those of rank(). One request, so that all are of one generation of the model.
    """
    options = _search_options(top, prefix, within, without, engine, model)
    options += [("norm", norm), *_look_up_options(unknown, case), ("fields", ("score", "eligible"))]
    tokens = [*_argument("a", a), *_argument("b", b)]
    return Request(line("RANK", options, tokens), _reply.ranked)


def sim(
    a: Terms,
    b: Terms,
    *,
    norm: Optional[str] = None,
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[float]:
    """The cosine of two words, or of the sums of groups of words.

    norm="unit" divides each vector by its length before adding. ZeroVector: a's vector is zero; if
    only b's is, the result is 0.
    """
    options = _group_options(norm, unknown, case, model)
    tokens = [*_argument("a", a), *_argument("b", b)]
    return Request(line("SIM", options, tokens), _reply.score)


def dist(
    a: Terms,
    b: Terms,
    *,
    norm: Optional[str] = None,
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[float]:
    """The squared Euclidean distance of two words' vectors, or of the means of groups of words.

    norm="unit" divides each vector by its length first.
    """
    options = _group_options(norm, unknown, case, model)
    tokens = [*_argument("a", a), *_argument("b", b)]
    return Request(line("DIST", options, tokens), _reply.distance)


def odd(
    words: Iterable[Terms],
    *,
    norm: Optional[str] = None,
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[Odd]:
    """The word that does not match the others: the one with the smallest cosine to their sum.

    Groups of words may stand for words; the result names a group by its text in the request.
    norm="unit" divides each vector of a group by its length before adding.
    """
    listed = items("words", words, "a list of words, or of groups of words")
    tokens = list(chain.from_iterable(_argument("words", each) for each in listed))
    if not tokens:
        raise ValueError("words: the list of words is empty")
    options = _group_options(norm, unknown, case, model)
    return Request(line("ODD", options, tokens), _reply.odd)


def matrix(
    words: Iterable[str],
    *,
    metric: str = "cosine",
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[List[List[float]]]:
    """Every word compared with every word, by "cosine" or "sqeuclidean" (squared distance)."""
    tokens = _word_list("words", words)
    member = "distances" if metric == "sqeuclidean" else "scores"
    options = [
        ("metric", metric),
        *_look_up_options(unknown, case),
        ("model", model),
    ]

    return Request(
        line("MATRIX", options, tokens), lambda reply: _reply.numbers(reply, member, len(tokens))
    )


def vec(
    words: Iterable[str],
    *,
    unknown: Optional[str] = None,
    case: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[Any]:
    """The vectors of words, as they are in the model: float32, one row a word.

    Returns an array of shape (words, dim), which cannot be written to; without numpy a list of
    array('f'). UnknownWord: a word is not in the model.
    """
    tokens = _word_list("words", words)
    options = [
        ("encoding", "base64"),
        *_look_up_options(unknown, case),
        ("model", model),
    ]
    return Request(
        line("VEC", options, tokens),
        lambda reply: _vectors.rows_from_base64(
            _reply.vectors(reply, len(tokens), may_skip=unknown != "error")
        ),
    )


def prefix(
    text: str,
    *,
    k: Optional[int] = None,
    within: Iterable[str] = (),
    without: Iterable[str] = (),
    fields: Iterable[str] = (),
    model: Optional[str] = None,
) -> Request[Answer[Word]]:
    """The words that start with a text, most frequent first: 10 unless k says how many."""
    options = [
        ("k", k),
        ("within", within),
        ("without", without),
        ("fields", fields),
        ("model", model),
    ]
    return Request(line("PREFIX", options, [token("text", text)]), _reply.words)


def has(
    words: Iterable[str],
    *,
    within: Iterable[str] = (),
    fields: Iterable[str] = (),
    case: Optional[str] = None,
    model: Optional[str] = None,
) -> Request[Answer[Word]]:
    """Which of the words the model has; with case="ignore", for which it has another.

    within: names of lists, to know also whether all of them have the word.
    """
    options = [
        ("within", within),
        ("fields", fields),
        ("case", case),
        ("model", model),
    ]
    tokens = _word_list("words", words)
    return Request(
        line("HAS", options, tokens), lambda reply: _reply.words(reply, asked=len(tokens))
    )


def lists(*, model: Optional[str] = None) -> Request[List[WordList]]:
    """The lists of words that a search may name in within and without."""
    return Request(line("LISTS", [("model", model)], ()), _reply.lists)


def models() -> Request[List[Model]]:
    """The models of the daemon. A connection asks the first one unless it names another."""
    return Request(line("MODELS", (), ()), _reply.models)


def reload(model: Optional[str] = None) -> Request[List[Model]]:
    """Loads a model, or all, again from its files, and their lists; returns those that it loaded.

    Forbidden: the caller is neither root nor the daemon's user. Unavailable: the files are wrong.
    It is not sent again if the connection ends before the answer.
    """
    tokens = () if model is None else (token("model", model),)
    return Request(line("RELOAD", (), tokens), _reply.models, repeatable=False)


def stats(*, model: Optional[str] = None) -> Request[Dict[str, Any]]:
    """The daemon's figures, and those of one model, by name."""
    options = [("model", model)]
    return Request(line("STATS", options, ()), _reply.result)


def prometheus() -> Request[str]:
    """The daemon's figures in Prometheus's text format."""
    return Request(
        line("STATS", (), ("prometheus",)),
        lambda reply: "".join(each + "\n" for each in _reply.shown_lines(reply)),
    )


def ping() -> Request[None]:
    """Asks whether the daemon answers."""
    return Request(line("PING", (), ()), lambda reply: None)


def help() -> Request[List[str]]:
    """The daemon's list of verbs."""
    return Request(line("HELP", (), ()), _reply.shown_lines)
