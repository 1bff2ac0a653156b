"""What a call that ends early leaves behind: nothing that waits for the garbage collector."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import sys
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple

import pytest
from fake import Peer, serving

import gloved
from gloved import KeyedVectors, requests
from gloved.requests import Request


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Without the garbage collector, nothing but its last reference ends an object."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Marker:
    """An object in the frame of a caller."""


def unreadable(reply: Any) -> Any:
    raise ValueError("no such answer")


def asked_with_an_error(first: Request[Any] = requests.ping()) -> Iterator[Request[Any]]:
    yield first
    raise LookupError("there are no more requests")


REQUESTS: List[Callable[[], Any]] = [
    lambda: [requests.near("zzzz")],
    lambda: [requests.near("king"), requests.near("zzzz"), requests.near("king")],
    lambda: (requests.near(word) for word in ["king"] * 600 + ["zzzz"] * 600),
    lambda: [Request(b"PING", unreadable)],
    lambda: [requests.near("king", model="no such model")],
    asked_with_an_error,
    # The call ends before the iterable's error is told.
    lambda: asked_with_an_error(requests.near("zzzz")),
]


@pytest.mark.parametrize("asked", REQUESTS)
def test_an_error_keeps_no_frame_of_its_caller(
    client: gloved.Client, asked: Callable[[], Any]
) -> None:
    marked: List[weakref.ref[Marker]] = []

    def call() -> None:
        marker = Marker()
        marked.append(weakref.ref(marker))
        for _ in client.ask_all(asked()):
            pass

    with contextlib.suppress(gloved.GlovedError, LookupError):
        call()
    assert marked[0]() is None


@pytest.mark.parametrize("asked", REQUESTS)
def test_an_error_keeps_no_coroutine_of_its_caller(
    daemon: Any, asked: Callable[[], Any]
) -> None:
    marked: List[weakref.ref[Marker]] = []

    async def call_all(client: gloved.AsyncClient) -> None:
        marker = Marker()
        marked.append(weakref.ref(marker))
        async for _ in client.ask_all(asked()):
            pass

    async def call_of_asynchronous(client: gloved.AsyncClient) -> None:
        async def given() -> Any:
            for each in asked():
                yield each

        marker = Marker()
        marked.append(weakref.ref(marker))
        async for _ in client.ask_all(given()):
            pass

    async def call_each(client: gloved.AsyncClient) -> None:
        marker = Marker()
        marked.append(weakref.ref(marker))
        for each in asked():
            await client.ask(each)

    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as client:
            for call in (call_all, call_of_asynchronous, call_each):
                with contextlib.suppress(gloved.GlovedError, LookupError):
                    await call(client)
                # The loop runs what ends an iterator.
                await asyncio.sleep(0)
                assert marked[-1]() is None, call.__name__

    asyncio.run(main())


def http(peer: Peer) -> None:
    peer.line()
    peer.send(b"HTTP/1.1 400 Bad Request\r\n")


def busy(peer: Peer) -> None:
    peer.send(b"ERR busy too many connections\n")


def unavailable(peer: Peer) -> None:
    peer.answer(1)
    while peer.line():
        peer.send(b'{"ok":false,"code":"unavailable","message":"no engine"}\n')


def without_model(peer: Peer) -> None:
    peer.line()
    peer.send(b'{"ok":false,"code":"unknown_model","message":"no"}\n')


SCRIPTS = [http, busy, Peer.ignore, Peer.line, unavailable, without_model]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("retries", [0, 1])
def test_an_error_of_a_connection_keeps_no_frame(
    script: Callable[[Peer], Any], retries: int
) -> None:
    marked: List[weakref.ref[Marker]] = []
    with serving(script) as server:
        with gloved.Client(server.socket, timeout=0.05, retries=retries) as client:

            def call() -> None:
                marker = Marker()
                marked.append(weakref.ref(marker))
                client.near("king")

            with contextlib.suppress(gloved.GlovedError):
                call()
            assert not client._pool._taken
    assert marked[0]() is None


CALLS: List[Callable[[KeyedVectors], Any]] = [
    lambda kv: list(kv.most_similar_many(["king", "zzzz"])),
    lambda kv: list(kv.most_similar_many(["king", 10**9])),
    lambda kv: list(kv.most_similar_many(["king", ""])),
    lambda kv: kv.most_similar("zzzz"),
    lambda kv: kv.similarity("king", "zzzz"),
    lambda kv: kv.get_vectors(["king", "zzzz"]),
    lambda kv: kv.get_index("zzzz"),
    lambda kv: kv.rank("king", "zzzz"),
    lambda kv: kv.most_similar_to_given("king", ["zzzz"]),
    lambda kv: kv.doesnt_match(["zzzz", "yyyy", "xxxx"]),
]


@pytest.mark.parametrize("call", CALLS)
def test_an_error_in_a_loop_over_a_batch_gives_its_connection_back(
    daemon: Any, call: Callable[[KeyedVectors], Any]
) -> None:
    def loop(kv: KeyedVectors) -> None:
        answers = kv.most_similar_many(["king"] * 600)
        for _ in answers:
            call(kv)

    with gloved.connect(daemon.socket, max_connections=3, timeout=1, retries=0) as kv:
        for _ in range(4):
            with pytest.raises((gloved.UnknownWord, ValueError)):
                loop(kv)


class TimeUp(TimeoutError):
    """What the handler of a signal raises to limit the time of a call."""


def interrupted_at(step: int, told: Tuple[Any, ...], call: Callable[[], Any]) -> bool:
    """Whether the call was ended by a TimeUp, raised at that step of the package's code."""
    package = str(Path(gloved.__file__).parent)
    steps = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal steps
        if not frame.f_code.co_filename.startswith(package):
            return None
        steps += event == "line"
        if steps == step:
            raise TimeUp(*told)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except TimeUp:
        return True
    finally:
        sys.settrace(before)
    # It must not be taken for an error of the connection, nor of the answer.
    assert steps < step
    return False


@pytest.mark.parametrize("is_connected", [False, True])
@pytest.mark.parametrize("told", [(), (errno.ETIME, os.strerror(errno.ETIME))])
def test_a_call_may_be_interrupted_anywhere(
    daemon: Any, is_connected: bool, told: Tuple[Any, ...]
) -> None:
    asked = requests.sim("king", "queen")
    with gloved.Client(daemon.socket) as client:
        expected = client.sim("king", "man")
    step, goes_on = 0, True
    while goes_on:
        step += 1
        with gloved.Client(daemon.socket, max_connections=1, timeout=1, retries=0) as client:
            if is_connected:
                client.ping()
            goes_on = interrupted_at(step, told, lambda: client.ask(asked))
            assert client.sim("king", "man") == expected, f"step {step}"
    assert step > 50


def test_an_absent_daemon_keeps_no_frame(tmp_path: Path) -> None:
    marked: List[weakref.ref[Marker]] = []

    def call() -> None:
        marker = Marker()
        marked.append(weakref.ref(marker))
        gloved.connect(tmp_path / "absent", retries=0)

    with contextlib.suppress(gloved.ConnectionFailed):
        call()
    assert marked[0]() is None
