"""Both clients against servers that fail, or are not gloved."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import grp
import json
import os
import pickle
import pwd
import socket
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List

import pytest
from fake import OK, Peer, serving

import gloved
from gloved import _wire, requests
from gloved.requests import Request

BUSY = b'{"ok":false,"code":"busy","message":"too many requests wait"}\n'
IDLE = b'{"ok":false,"code":"idle","message":"nothing came for an hour"}\n'
UNAVAILABLE = b'{"ok":false,"code":"unavailable","message":"the engine has failed"}\n'


def _with_client(path: str, asked: Iterable[Request[Any]], **options: Any) -> List[Any]:
    with gloved.Client(path, **options) as client:
        return list(client.ask_all(asked))


def _with_async_client(path: str, asked: Iterable[Request[Any]], **options: Any) -> List[Any]:
    async def run() -> List[Any]:
        async with gloved.AsyncClient(path, **options) as client:
            return [answer async for answer in client.ask_all(asked)]

    return asyncio.run(run())


AskAll = Callable[..., List[Any]]


@pytest.fixture(params=[_with_client, _with_async_client], ids=["Client", "AsyncClient"])
def ask_all(request: pytest.FixtureRequest) -> AskAll:
    """A function (socket, requests, options of the client) that returns all answers."""
    function: AskAll = request.param
    return function


def text(line: str) -> Request[str]:
    """A request whose answer is its own line, so that answers cannot be mixed up."""
    return Request(line.encode(), lambda reply: line)


def texts(count: int) -> List[Request[str]]:
    return [text(f"PING {number}") for number in range(count)]


def lines_of(asked: Iterable[Request[Any]]) -> List[str]:
    return [request.line.decode() for request in asked]


def echo(peer: Peer) -> None:
    """Answers as gloved does, and says which line it answers."""
    while True:
        line = peer.line()
        if not line:
            return
        peer.send(b'{"ok":true,"line":"%s"}\n' % line)


def echoed(count: int) -> List[Request[str]]:
    return [
        Request(f"PING {number}".encode(), lambda reply: str(reply["line"]))
        for number in range(count)
    ]


# Servers that are not gloved.


def http(peer: Peer) -> None:
    peer.line()
    peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def noise(peer: Peer) -> None:
    peer.send(bytes(range(255, -1, -1)) * 100)
    peer.serve()


def banner_without_end(peer: Peer) -> None:
    peer.send(b"220 mail.example ESMTP")
    peer.ignore()


@pytest.mark.parametrize("script", [http, noise, banner_without_end])
def test_a_server_that_is_not_gloved(ask_all: AskAll, script: Callable[[Peer], None]) -> None:
    with serving(script) as server:
        with pytest.raises(gloved.GlovedError, match="what answers is not gloved") as raised:
            ask_all(server.socket, texts(3))
    assert type(raised.value) is gloved.GlovedError
    # A stranger is not asked again.
    assert len(server.lines) == 1


def half_a_line(peer: Peer) -> None:
    peer.answer(1)
    peer.send(OK[:10])
    peer.ignore()


@pytest.mark.parametrize("script", [Peer.ignore, half_a_line])
@pytest.mark.parametrize("count", [1, 3])
def test_a_server_that_does_not_answer(
    ask_all: AskAll, script: Callable[[Peer], None], count: int
) -> None:
    with serving(script) as server:
        begun = time.monotonic()
        with pytest.raises(gloved.Timeout) as raised:
            ask_all(server.socket, texts(count), timeout=0.1)
        assert 0.1 <= time.monotonic() - begun < 2
    assert isinstance(raised.value, TimeoutError)
    assert len(server.lines) == 1


def test_a_stranger_that_never_answers_ends_a_reload_too(ask_all: AskAll) -> None:
    with serving(Peer.ignore) as server:
        with pytest.raises(gloved.Timeout):
            ask_all(server.socket, [requests.reload()], timeout=0.1)


def test_a_server_that_does_not_read(ask_all: AskAll) -> None:
    with serving(lambda peer: time.sleep(0.5)) as server:
        asked = [Request(b"PING " + b"x" * 60_000, str) for _ in range(100)]
        with pytest.raises(gloved.Timeout):
            ask_all(server.socket, asked, timeout=0.1)


def at_once(peer: Peer) -> None:
    pass


def after_half_a_line(peer: Peer) -> None:
    peer.answer(1)
    peer.line()
    peer.send(OK[:10])


@pytest.mark.parametrize("script", [at_once, after_half_a_line])
def test_a_server_that_closes(ask_all: AskAll, script: Callable[[Peer], None]) -> None:
    with serving(script) as server:
        with pytest.raises(gloved.ConnectionFailed):
            ask_all(server.socket, texts(1), retries=2)
    assert len(server.lines) == 3


@pytest.mark.parametrize("script", [at_once, after_half_a_line])
def test_the_next_connection_answers(ask_all: AskAll, script: Callable[[Peer], None]) -> None:
    with serving(script, script, echo) as server:
        assert ask_all(server.socket, echoed(600)) == lines_of(echoed(600))


def test_no_server(ask_all: AskAll, tmp_path: Path) -> None:
    path = str(tmp_path / "absent.sock")
    begun = time.monotonic()
    with pytest.raises(gloved.ConnectionFailed, match="absent.sock: No such file") as raised:
        ask_all(path, texts(1), retries=3)
    # 10, 20 and 40 ms.
    assert 0.07 <= time.monotonic() - begun < 2
    assert isinstance(raised.value, ConnectionError)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may connect everywhere: for a while this process is not root's."""
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


OTHER, NOBODY, NAMELESS = 1, 65534, 1_234_567
USER, GROUP = pwd.getpwuid(OTHER).pw_name, grp.getgrgid(OTHER).gr_name
ALLOWED = [
    # The owner, the group and the mode of the directory, and of the socket; whom that lets connect.
    ((0, 0, 0o755), (0, OTHER, 0o660), f"It is for the group {GROUP}: .*adduser .* {GROUP}"),
    ((0, 0, 0o755), (OTHER, OTHER, 0o600), f"It is for the user {USER} alone"),
    ((0, 0, 0o755), (NAMELESS, NAMELESS, 0o600), f"It is for the user {NAMELESS} alone"),
    ((0, 0, 0o755), (0, NAMELESS, 0o660), f"It is for the group {NAMELESS}, which has no name"),
    ((0, 0, 0o755), (0, 0, 0o660), "Only root may connect"),
    ((0, OTHER, 0o750), (0, 0, 0o666), f"Its directory is for the group {GROUP}: .*adduser"),
    ((OTHER, OTHER, 0o700), (0, 0, 0o666), f"Its directory is for the user {USER} alone"),
    ((0, 0, 0o700), (0, 0, 0o666), "Only root may connect"),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to others")
def test_a_socket_that_this_user_may_not_use(ask_all: AskAll) -> None:
    with serving(Peer.serve) as server:
        path = Path(server.socket)
        for *modes, told in ALLOWED:
            for each, (owner, group, mode) in zip((path.parent, path), modes):
                os.chown(each, owner, group)
                os.chmod(each, mode)
            with as_nobody(), pytest.raises(PermissionError, match=told) as raised:
                # Ten retries would take five seconds, and not help.
                ask_all(server.socket, texts(1), retries=10**6)
            assert isinstance(raised.value, gloved.AccessDenied)
            assert isinstance(raised.value, gloved.ConnectionFailed)
            assert "Start one" not in str(raised.value)
        assert not server.lines


@pytest.mark.parametrize("path", ["/tmp/" + "x" * 200, "/tmp/\ud800"])
def test_paths_that_cannot_be(ask_all: AskAll, path: str) -> None:
    with pytest.raises(gloved.ConnectionFailed):
        ask_all(path, texts(1), retries=1)


def test_a_full_backlog(ask_all: AskAll, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        with pytest.raises(gloved.ConnectionFailed, match="too many clients"):
            ask_all(path, texts(1), retries=1, timeout=5)


# Servers that answer, but not as gloved does.


def drip(peer: Peer) -> None:
    """A byte now and then, each in time; the answer takes half a second."""
    peer.answer(1)
    peer.line()
    for byte in OK:
        time.sleep(0.02)
        peer.send(bytes((byte,)))


def drip_before_setup(peer: Peer) -> None:
    for byte in OK:
        time.sleep(0.02)
        peer.send(bytes((byte,)))
    peer.line()
    peer.serve()


@pytest.mark.parametrize("script", [drip, drip_before_setup])
def test_an_answer_has_to_be_whole_in_time(
    ask_all: AskAll, script: Callable[[Peer], None]
) -> None:
    with serving(script) as server:
        with pytest.raises(gloved.Timeout, match="not whole within 0.3 s.*larger timeout="):
            ask_all(server.socket, texts(1), timeout=0.3)


def test_many_answers_take_longer_than_one_may(ask_all: AskAll) -> None:
    def slow(peer: Peer) -> None:
        while peer.line():
            time.sleep(0.1)
            peer.send(OK)

    with serving(slow) as server:
        assert ask_all(server.socket, texts(8), timeout=0.5) == lines_of(texts(8))


def test_an_answer_has_an_end(ask_all: AskAll, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_wire, "MAX_REPLY_BYTES", 1_000_000, raising=False)

    def endless(peer: Peer) -> None:
        peer.answer(1)
        peer.line()
        peer.send(b'{"ok":true,"results":[')
        for _ in range(2_000):
            peer.send(b"1," * 5_000)
        peer.send(b"1]}\n")

    with serving(endless) as server:
        with pytest.raises(gloved.GlovedError, match="more than 1000000 bytes"):
            ask_all(server.socket, texts(1))


HEAD = b'"us":1,"rows":3,"model":"m","generation":"g"'


def answering(results: bytes, head: bytes = HEAD) -> Callable[[Peer], None]:
    """A server that gives these results to every request."""

    def script(peer: Peer) -> None:
        peer.answer(1)
        while peer.line():
            peer.send(b'{"ok":true,%s,"results":%s}\n' % (head, results))

    return script


def vector_results(*texts: str) -> bytes:
    return json.dumps([{"vector_base64": each} for each in texts]).encode()


GOOD = base64.b64encode(bytes(12)).decode()
WRONG_VECTORS = {
    "none": vector_results(),
    "one too few": vector_results(GOOD),
    "one too many": vector_results(GOOD, GOOD, GOOD),
    "another length": vector_results(GOOD, base64.b64encode(bytes(8)).decode()),
    "no base64": vector_results(GOOD, "!!!!!!!!!!!!!!!!"),
    "bytes between": vector_results(GOOD, "AAAA!AAAAAAAAAAAA"),
    "no padding": vector_results(GOOD, GOOD[:-1] + "A" + "A" * 3),
    "half a number": vector_results(GOOD, base64.b64encode(bytes(13)).decode()),
    "empty": vector_results("", ""),
    "no text": b'[{"vector_base64":7},{"vector_base64":null}]',
    "no member": b"[{},{}]",
    "no list": b"7",
    "an object": b'{"vector_base64":"AAAA"}',
}


@pytest.mark.parametrize("results", WRONG_VECTORS.values(), ids=WRONG_VECTORS)
def test_wrong_vectors_are_an_error_of_the_protocol(ask_all: AskAll, results: bytes) -> None:
    with serving(answering(results)) as server:
        with pytest.raises(gloved.Internal, match="cannot be read"):
            ask_all(server.socket, [requests.vec(["a", "b"])])
        with gloved.Client(server.socket) as client:
            vectors = gloved.KeyedVectors(client)
            for call in (
                lambda: vectors[["a", "b"]],
                lambda: vectors.get_vectors(["a", "b"]),
                lambda: vectors.get_mean_vector(["a", "b"], ignore_missing=False),
                lambda: vectors.distances([1.0, 2.0, 3.0], ["a", "b"]),
            ):
                with pytest.raises(gloved.Internal):
                    call()


WRONG_WORDS = {
    "no results": (b"[]", HEAD),
    "no generation": (b'[{"word":"a","known":true,"rank":0}]', b'"us":1,"rows":3,"model":"m"'),
    "too many rows": (
        b'[{"word":"a","known":true,"rank":0,"max_k":9}]',
        HEAD.replace(b'"rows":3', b'"rows":1000000000000000'),
    ),
    "rank beyond": (b'[{"word":"a","known":true,"rank":3,"max_k":9}]', HEAD),
    "negative": (b'[{"word":"a","known":true,"rank":-1,"max_k":9}]', HEAD),
    "no word": (b'[{"word":7,"known":true,"rank":0,"max_k":9}]', HEAD),
    "text": (b'[{"word":"a","known":true,"rank":"x","max_k":9}]', HEAD),
    "max_k of nothing": (b'[{"word":"a","known":true,"rank":0,"max_k":0}]', HEAD),
    "always full": (b'[{"word":"a","known":true,"rank":0,"max_k":1}]', HEAD),
    "no max_k": (b'[{"word":"a","known":true,"rank":0}]', HEAD),
}


@pytest.mark.parametrize("results, head", WRONG_WORDS.values(), ids=WRONG_WORDS)
def test_wrong_words_are_an_error_of_the_protocol(results: bytes, head: bytes) -> None:
    with serving(answering(results, head)) as server, gloved.Client(server.socket) as client:
        vectors = gloved.KeyedVectors(client)
        for call in (
            lambda: vectors.index_to_key,
            lambda: vectors[2],
            lambda: vectors.vectors,
            lambda: vectors.closer_than("a", "b"),
        ):
            with pytest.raises(gloved.Internal):
                call()


# Refused connections, idle ones, and requests that a full queue refuses.


def refuse(peer: Peer) -> None:
    peer.send(b"ERR busy 10 connections are open, which is the limit\n")


def test_a_refused_connection_is_opened_again(ask_all: AskAll) -> None:
    with serving(refuse, refuse, echo) as server:
        assert ask_all(server.socket, echoed(5)) == lines_of(echoed(5))
    with serving(refuse) as server:
        with pytest.raises(gloved.Busy, match="10 connections are open"):
            ask_all(server.socket, texts(1), retries=1)
    assert len(server.lines) == 2


def test_an_idle_line_answers_no_request(ask_all: AskAll) -> None:
    def idle(peer: Peer) -> None:
        peer.answer(3)
        peer.line()
        peer.send(IDLE)

    with serving(idle, echo) as server:
        answers = ask_all(server.socket, texts(5))
    assert answers == lines_of(texts(5))
    assert server.all_lines[-3:] == [b"PING 2", b"PING 3", b"PING 4"]


def test_busy_and_unavailable_requests_are_asked_again(ask_all: AskAll) -> None:
    def refuse_two(peer: Peer) -> None:
        peer.answer(2)
        for error in (BUSY, UNAVAILABLE):
            peer.line()
            peer.send(error)
        echo(peer)

    with serving(refuse_two) as server:
        assert ask_all(server.socket, texts(5)) == lines_of(texts(5))

    def refuse_one(peer: Peer) -> None:
        peer.answer(1)
        peer.line()
        peer.send(BUSY)

    with serving(refuse_one) as server:
        with pytest.raises(gloved.Busy):
            ask_all(server.socket, texts(1), retries=2)


def test_every_answer_restores_patience(ask_all: AskAll) -> None:
    def one(peer: Peer) -> None:
        peer.answer(2)

    with serving(one) as server:
        # Each connection answers one request.
        assert ask_all(server.socket, texts(6), retries=1) == lines_of(texts(6))


def test_a_request_that_always_fails_ends_the_pipeline(ask_all: AskAll) -> None:
    def die_at_three(peer: Peer) -> None:
        peer.answer(1)
        while True:
            line = peer.line()
            if line in (b"", b"PING 3"):
                return
            peer.send(OK)

    with serving(die_at_three) as server:
        with pytest.raises(gloved.ConnectionFailed):
            ask_all(server.socket, texts(9), retries=2)
    assert server.all_lines.count(b"PING 3") == 3


def test_an_unknown_model_is_not_asked_again(ask_all: AskAll) -> None:
    def without_model(peer: Peer) -> None:
        peer.answer(1)
        peer.line()
        peer.send(b'{"ok":false,"code":"unknown_model","message":"there is glove"}\n')
        echo(peer)

    with serving(without_model) as server:
        with pytest.raises(gloved.UnknownModel, match="there is glove"):
            ask_all(server.socket, texts(1), model="other")
    assert len(server.lines) == 1


# RELOAD.


def test_reload_is_not_sent_twice(ask_all: AskAll) -> None:
    def die(peer: Peer) -> None:
        peer.answer(1)
        peer.line()

    with serving(die) as server:
        with pytest.raises(gloved.ConnectionFailed):
            ask_all(server.socket, [requests.reload()])
    assert server.all_lines == [b"RELOAD"]


@pytest.mark.parametrize("last_line", [IDLE, b"ERR busy 10 connections are open\n"])
def test_reload_is_sent_again_if_nothing_was_read(ask_all: AskAll, last_line: bytes) -> None:
    def end(peer: Peer) -> None:
        if last_line == IDLE:
            peer.answer(1)
        peer.send(last_line)

    with serving(end, Peer.serve) as server:
        assert ask_all(server.socket, [requests.reload()]) == [[]]


def test_reload_waits_longer_than_the_timeout(ask_all: AskAll) -> None:
    def slow(peer: Peer) -> None:
        while True:
            line = peer.line()
            if not line:
                return
            if line == b"RELOAD":
                time.sleep(0.3)
            peer.send(OK)

    with serving(slow) as server:
        answers = ask_all(server.socket, [text("PING"), requests.reload()], timeout=0.1)
    assert answers == ["PING", []]


def test_reload_is_alone(ask_all: AskAll) -> None:
    """What is asked again for others' sake is no RELOAD that was answered."""

    def busy_at_one(peer: Peer) -> None:
        peer.answer(1)
        number = 0
        while True:
            if not peer.line():
                return
            number += 1
            peer.send(BUSY if number == 1 else OK)

    asked = [text("PING 1"), requests.reload(), text("PING 2"), text("PING 3")]
    with serving(busy_at_one, Peer.serve) as server:
        assert ask_all(server.socket, asked) == ["PING 1", [], "PING 2", "PING 3"]
    assert server.all_lines.count(b"RELOAD") == 1
    lines = server.all_lines
    assert lines.index(b"RELOAD") < lines.index(b"PING 2")


# Errors of the caller's iterable.


@pytest.mark.parametrize("error", [KeyError("mine"), gloved.Busy("mine"), gloved.TooLong("mine")])
def test_an_error_of_the_iterable_comes_after_the_answers(
    ask_all: AskAll, error: Exception
) -> None:
    answers: List[str] = []

    def read(reply: Any) -> str:
        answers.append("one")
        return "one"

    def asked() -> Iterable[Request[str]]:
        for number in range(3):
            yield Request(b"PING", read)
        raise error

    with serving(Peer.serve) as server:
        with pytest.raises(type(error)) as raised:
            ask_all(server.socket, asked())
    assert raised.value is error
    assert len(answers) == 3
    assert len(server.lines) == 1


# The classes.


def test_errors_can_be_copied_and_pickled() -> None:
    kinds = [getattr(gloved, name) for name in gloved.__all__]
    errors = [
        kind("why") for kind in kinds
        if isinstance(kind, type) and issubclass(kind, gloved.GlovedError)
    ]
    errors.append(gloved.UnknownWord("why", "word", ["ward", "world"]))
    other = gloved.GlovedError("why")
    other.code = "of_tomorrow"
    errors.append(other)
    assert len(errors) > 10
    for error in errors:
        for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert type(twin) is type(error)
            assert (str(twin), twin.code, vars(twin)) == ("why", error.code, vars(error))


@pytest.mark.parametrize("kind", [gloved.Client, gloved.AsyncClient])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_options_that_cannot_be(kind: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="unknown_option"):
        kind(unknown_option=1)
    refused: List[Dict[str, Any]] = [
        {"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}, {"model": ""}
    ]
    for options in refused:
        with pytest.raises(ValueError):
            kind("/nowhere", **options)
    with pytest.raises(TypeError):
        kind(7)
    with pytest.raises(ValueError):
        gloved.AsyncClient("/nowhere", connections=0)
    with pytest.raises(ValueError):
        gloved.Client("/nowhere", max_connections=0)
