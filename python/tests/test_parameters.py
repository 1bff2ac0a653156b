"""Every parameter of every verb, with values that could make another request.

The parameters are those that the signatures have, so a new one is tried without being named here.
A value is refused before anything is sent, with an error that names the parameter; or it is sent as
one token, which the daemon reads as that value.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import pytest
from conftest import Daemon

import gloved
from gloved import KeyedVectors, requests
from gloved_explore.answers import Answers
from gloved._wire import Request, parse_reply

# Each of them stands for a word of a model below, if a model can have it.
TEXTS = {
    "blank": "king k=1",
    "option": "k=1",
    "tab": "king\tk=1",
    "LF": "king\nPING",
    "CR": "king\rPING",
    "NUL": "king\0",
    "quote": 'king" k=1 "',
    "quote at the end": 'king"',
    "backslash": "king\\",
    "escape": "\\x41",
    "equals": "=",
    "group": "( queen",
    "end of a group": "king ) k=1 (",
    "plus": "+",
    "not UTF-8": "caf\udce9",
    "comma": "king,k=1",
}
NO_TEXTS = {
    "empty": "",
    "70,000 bytes": "x" * 70_000,
    "long in quotes": "\0" * 20_000,
    "half of a pair": "\ud800",
    "bytes": b"king",
    "int": 7,
    "float": 0.5,
    "None in a list": [None],
    "list of lists": [["king", "queen", "man"]],
    "dict": {"king": 2.0},
    "object": object(),
    "huge": 10**5000,
    "NaN": float("nan"),
    "bool": True,
}
VALUES: Dict[str, Any] = {
    **TEXTS,
    **{f"{name} in a list": [text] for name, text in TEXTS.items()},
    **{f"{name} in an expression": requests.Expression(text) for name, text in TEXTS.items()},
    **{f"{name} with a weight": [("king", 1.0), (text, -2.5)] for name, text in TEXTS.items()},
    **NO_TEXTS,
}

# A parameter that has no default needs a value, by its type.
VALID = {
    "str": "king",
    "Terms": "king",
    "Iterable[Terms]": ["king", "queen", "man"],
    "Iterable[str]": ["king", "queen"],
    "Vector": [0.5] * 3,
}

VERBS = {
    name: function
    for name, function in inspect.getmembers(requests, inspect.isfunction)
    if name in requests.__all__
}


class Token(NamedTuple):
    """A token of a request, without its quotes."""

    option: str
    """The name of an option, with its "="; empty for words, operators and the verb."""
    text: str
    quoted: bool


def cases() -> List[Tuple[str, str]]:
    return [(verb, each) for verb in VERBS for each in inspect.signature(VERBS[verb]).parameters]


def arguments(function: Callable[..., Any]) -> Dict[str, Any]:
    """What a call of the function needs."""
    return {
        name: VALID[parameter.annotation]
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }


_TOKEN = re.compile(r'([a-z]+=|base64=)?(?:"((?:[^"\\]|\\.)*)"(?=[ \t]|$)|([^ \t]+))')


def tokens_of(line: str) -> List[Token]:
    """The tokens of a request by the rules of PROTOCOL.md."""
    found: List[Token] = []
    for option, quoted, bare in _TOKEN.findall(line):
        data = re.sub(
            rb"\\(?:x(..)|(.))",
            lambda each: bytes((int(each[1], 16),)) if each[1] else each[2],
            quoted.encode("utf-8", "surrogateescape"),
        )
        text = line_of(data)
        if option and found and all(each.option for each in found[1:]):
            found.append(Token(option, text or bare, False))
        else:
            found.append(Token("", text or option + bare, bool(quoted)))
    return found


def line_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def shape(line: bytes) -> List[str]:
    """What of a request does not depend on the text of its words and values."""
    return [each.option or ('"' if each.quoted else each.text) for each in tokens_of(line_of(line))]


def named(error: Exception, name: str) -> bool:
    return re.search(rf"\b{name}\b", str(error)) is not None


def build(verb: str, name: str, value: Any) -> Optional[Request[Any]]:
    """The request with this value; None if it is refused, as it must be."""
    function = VERBS[verb]
    try:
        return function(**{**arguments(function), name: value})  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        assert named(error, name) or "a request of" in str(error), error
        return None


def texts_in(value: Any) -> List[str]:
    """The texts that a value is made of."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple, dict)):
        return [text for each in value for text in texts_in(each)]
    return []


@pytest.mark.parametrize("verb, name", cases())
def test_a_value_never_becomes_another_part_of_the_request(verb: str, name: str) -> None:
    plain = shape(VERBS[verb](**arguments(VERBS[verb])).line)
    for what, value in VALUES.items():
        request = build(verb, name, value)
        if request is None:
            continue
        assert not set(request.line) & set(b"\n\r\0"), what
        if isinstance(value, requests.Expression):
            # It is the caller's text: all of it is in one pair of parentheses.
            assert f"( {value.text} )" in line_of(request.line)
            continue
        # Each text is a whole token, or the whole value of its option.
        tokens = {each.text for each in tokens_of(line_of(request.line))}
        assert tokens >= set(texts_in(value)), what
        # Nothing else has come to the request but the parameter's own option or words.
        known = {*plain, f"{name}=", '"', "(", ")", "+", "-", "*", "2.5"}
        assert set(shape(request.line)) <= known, (what, request.line)


@pytest.fixture(scope="module")
def hard_daemon(
    serve_all: Callable[..., Daemon], convert: Any, tmp_path_factory: pytest.TempPathFactory
) -> Daemon:
    """A model that has most of the texts as words."""
    work = tmp_path_factory.mktemp("hard")
    possible = [each for each in TEXTS.values() if not set(each) & set("\t\n\r\0")]
    lines = [f"{len(possible) + 3} 3", "king 1 2 3", "queen 2 2 3", "man 3 -1 2"]
    lines += [f"{word} {number} 1 {number % 5}" for number, word in enumerate(possible, 1)]
    data = "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n"
    (work / "text").write_bytes(data)
    return serve_all("--model", f"hard={convert(work / 'text', work / 'model')}")


@pytest.fixture
def hard_client(hard_daemon: Daemon) -> Iterator[gloved.Client]:
    with gloved.Client(hard_daemon.socket) as client:
        yield client


@pytest.mark.parametrize("verb, name", cases())
def test_the_daemon_reads_the_value_that_was_given(
    hard_client: gloved.Client, verb: str, name: str
) -> None:
    can_certify = "certify" in inspect.signature(VERBS[verb]).parameters and name != "certify"
    for what, value in VALUES.items():
        given = build(verb, name, value)
        if given is None or not given.repeatable:
            continue
        if can_certify:
            extra = {**arguments(VERBS[verb]), name: value, "certify": True}
            given = VERBS[verb](**extra)
        answers = list(
            hard_client.ask_all(
                [Request(given.line, lambda reply: reply), requests.ping()],
                return_exceptions=True,
            )
        )
        # One request has one answer.
        assert len(answers) == 2 and answers[1] is None, what
        reply = answers[0]
        if isinstance(reply, gloved.GlovedError):
            # It tells what it does not take.
            assert reply.code != "internal"
            assert reply.code in ("bad_request", "zero_vector") or any(
                shown(part)[:150] in reply.message
                for text in texts_in(value)
                # A str may be several names of lists.
                for part in (text.split(",") if reply.code == "unknown_list" else [text])
            ), (what, reply.message)
            continue
        if verb == "has":
            told = [each["word"] for each in reply["results"]]
            assert told == (list(value) if name == "words" else ["king", "queen"])
        if not can_certify or "request" not in reply:
            continue
        repeated = tokens_of(reply["request"])
        for text in texts_in(value):
            assert text in {each.text for each in repeated if each.option in ("", f"{name}=")}, what


def shown(text: str) -> str:
    """The text as messages quote it."""
    return "".join(
        each if each.isprintable() and each not in '"\\'
        else "\\" + each if each in '"\\'
        else "".join(f"\\x{byte:02X}" for byte in each.encode("utf-8", "surrogateescape"))
        for each in text
    )


@pytest.mark.parametrize("verb", VERBS)
def test_both_clients_send_the_requests_of_the_functions(
    monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    sent: List[bytes] = []

    def ask(client: Any, request: Request[Any]) -> None:
        sent.append(request.line)

    async def ask_later(client: Any, request: Request[Any]) -> None:
        sent.append(request.line)

    monkeypatch.setattr(gloved.Client, "ask", ask)
    monkeypatch.setattr(gloved.AsyncClient, "ask", ask_later)
    client, later = gloved.Client("/nowhere"), gloved.AsyncClient("/nowhere")
    for name in inspect.signature(VERBS[verb]).parameters:
        for value in VALUES.values():
            request = build(verb, name, value)
            given = {**arguments(VERBS[verb]), name: value}
            if request is not None:
                getattr(client, verb)(**given)
                asyncio.run(getattr(later, verb)(**given))
                assert sent == [request.line] * 2
                sent.clear()
                continue
            with pytest.raises((TypeError, ValueError)):
                getattr(client, verb)(**given)
            with pytest.raises((TypeError, ValueError)):
                asyncio.run(getattr(later, verb)(**given))
            assert not sent


def test_the_clients_have_no_other_methods_that_ask() -> None:
    for kind in gloved.Client, gloved.AsyncClient:
        methods = {name for name in vars(kind) if not name.startswith("_")}
        assert methods - {"ask", "ask_all", "close"} == set(VERBS)


# KeyedVectors, and the page of explore.

# Lists of positive and negative keys, and so on, by the names that gensim gives them.
KEYED = {
    "positive": ["king"],
    "negative": ["man"],
    "keys": ["king", "queen"],
    "words": ["king", "queen", "man"],
    "keys_list": ["king", "queen"],
    "ws1": ["king"],
    "ws2": ["queen"],
    "vector": [0.5, 0.5, 0.5],
    "vector_1": [0.5, 0.5, 0.5],
    "vectors_all": [[0.5, 0.5, 0.5]],
    "other_words": ["king"],
    "key_or_keys": ["king"],
}


class Log:
    """A client that notes what is sent."""

    def __init__(self, client: gloved.Client) -> None:
        self.client = client
        self.lines: List[bytes] = []

    def __getattr__(self, name: str) -> Any:
        if name in VERBS:
            return lambda *args, **given: self.ask(VERBS[name](*args, **given))
        return getattr(self.client, name)

    def ask(self, request: Request[Any]) -> Any:
        self.lines.append(request.line)
        return self.client.ask(request)

    def ask_all(self, asked: Any, **given: Any) -> Iterator[Any]:
        def noted() -> Iterator[Request[Any]]:
            for each in asked:
                self.lines.append(each.line)
                yield each

        return self.client.ask_all(noted(), **given)


def keyed_methods() -> List[Tuple[str, str]]:
    return [
        (method, name)
        for method, function in inspect.getmembers(KeyedVectors, inspect.isfunction)
        if method in ("__getitem__", "__contains__") or not method.startswith("_")
        for name in list(inspect.signature(function).parameters)
        if name != "self" and not method.startswith("evaluate_")
    ]


@pytest.mark.parametrize("method, name", keyed_methods())
def test_no_argument_of_keyed_vectors_becomes_another_request(
    hard_client: gloved.Client, method: str, name: str
) -> None:
    log = Log(hard_client)
    vectors = KeyedVectors(log)  # type: ignore[arg-type]
    function = getattr(vectors, method)
    given = {
        each: KEYED.get(each, "king")
        for each, parameter in inspect.signature(function).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    if method.startswith("most_similar") and method != "most_similar_to_given":
        given.setdefault("words" if "many" in method else "positive", ["king"])
    for what, value in VALUES.items():
        if isinstance(value, requests.Expression):
            continue
        log.lines.clear()
        try:
            result = function(**{**given, name: value})
            if method == "most_similar_many":
                list(result)
        except (TypeError, ValueError, KeyError, NotImplementedError, ArithmeticError) as error:
            assert "Internal" not in type(error).__name__, (what, error)
        for line in log.lines:
            known = {
                "NEAR", "NEARVEC", "ANALOGY", "SIM", "RANK", "ODD", "HAS", "VEC", "PREFIX", "STATS",
                "MODELS", "PING", '"', "(", ")", "+", "-", "*", "2.5", "2.0", "0.5", "7.0",
                *(f"{option}=" for option in ("k", "top", "only", "norm", "unknown", "case",
                                              "encoding", "fields", "method", "base64", "model",
                                              "min")),
            }
            assert set(shape(line)) <= known, (what, line)
            assert not set(line) & set(b"\n\r\0"), what


class Form(Mapping[str, str]):
    """A form that notes which fields are read."""

    def __init__(self, fields: Dict[str, str]) -> None:
        self.fields = fields
        self.read: List[str] = []

    def __getitem__(self, name: str) -> str:
        self.read.append(name)
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


FORMS = {
    "q": "king",
    "a": "king",
    "b": "queen",
    "c": "man",
    "words": "king queen man",
}


@pytest.mark.parametrize("question", ["models", "near", "analogy", "odd", "sim"])
def test_no_field_of_the_page_becomes_another_request(
    hard_client: gloved.Client, question: str
) -> None:
    log = Log(hard_client)
    answers = Answers(log)  # type: ignore[arg-type]
    assert set(answers.questions) == {"models", "near", "analogy", "odd", "sim"}
    form = Form(dict(FORMS))
    assert "error" not in answers.ask(question, form)
    known = {each for line in log.lines for each in shape(line)}
    known |= {"model=", "k=", "top=", "PREFIX", "VEC", "(", ")", "+", "-", "*", '"'}
    for name in dict.fromkeys(form.read):
        for what, text in {**TEXTS, **NO_TEXTS}.items():
            if not isinstance(text, str) or what == "half of a pair":
                # What comes from a browser is UTF-8.
                continue
            log.lines.clear()
            answers.ask(question, {**FORMS, name: text})
            for line in log.lines:
                assert not set(line) & set(b"\n\r\0"), what
                if name != "q":
                    assert set(shape(line)) <= known, (what, line)
                # The daemon reads what is certified as one expression.
                assert line.startswith(b"NEAR ") <= (line.count(b"\nNEAR ") == 0)


def test_values_of_numpy(hard_client: gloved.Client) -> None:
    numpy = pytest.importorskip("numpy")
    assert not hard_client.vec(["king k=1"]).flags.writeable
    for value in True, 1, numpy.bool_(True), numpy.int64(1):
        assert b" certify=1 " in requests.near("king", certify=value).line
    for value in False, 0, None, numpy.bool_(False):
        assert b"certify" not in requests.near("king", certify=value).line
    with pytest.raises(TypeError, match="^vector has real numbers"):
        requests.near_vector([10**400] * 3)


def test_parse_reply_knows_what_is_certified(hard_client: gloved.Client) -> None:
    answer = hard_client.near("king k=1", certify=True, within=())
    assert answer.info.audit is not None
    assert tokens_of(parse_reply(answer.info.audit)["request"])[-1] == ("", "king k=1", True)
