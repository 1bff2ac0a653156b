"""Client, its pool and what it keeps among threads, and on both sides of a fork."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List

import conftest
import pytest
from fake import Peer, serving

import gloved
from gloved import _snapshot, requests
from gloved._connection import Connection
from gloved._pool import Pool

WORDS = ["king", "queen", "man", "woman", "paris", "france", "snake", "fish"]


def in_child(check: Callable[[], bool]) -> None:
    """Runs the check in a forked child, within ten seconds; it must return True."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if check() else 2
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr)
        finally:
            os._exit(status)
    deadline = time.monotonic() + 10
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            return
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.005)


def test_threads_share_a_client(client: gloved.Client) -> None:
    expected = {word: client.near(word) for word in WORDS}

    def ask(number: int) -> bool:
        words = WORDS[number % 8:] + WORDS[:number % 8]
        singles = all(client.near(word) == expected[word] for word in words)
        answers = client.ask_all(requests.near(word) for word in words * 10)
        return singles and list(answers) == [expected[word] for word in words * 10]

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(ask, range(64)))
    assert not client._pool._taken


def test_no_more_connections_than_the_limit(daemon: conftest.Daemon) -> None:
    with gloved.Client(daemon.socket, max_connections=2) as client:
        begun = client.stats()["connections_total"]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: client.near("king"), range(100)))
        assert client.stats()["connections_total"] <= begun + 1
        assert len(client._pool._idle) <= 2


def test_threads_wait_for_a_connection(daemon: conftest.Daemon) -> None:
    with gloved.Client(daemon.socket, max_connections=1, timeout=0.2) as client:
        answers = client.ask_all(requests.ping() for _ in range(600))
        next(answers)
        begun = time.monotonic()
        with pytest.raises(gloved.Timeout, match="all 1 connections were in use"):
            client.ping()
        assert 0.2 <= time.monotonic() - begun < 2
        waiting = threading.Thread(target=client.ping)
        waiting.start()
        assert len(list(answers)) == 599
        waiting.join()
        client.ping()


def test_close_wakes_threads_that_wait(daemon: conftest.Daemon) -> None:
    client = gloved.Client(daemon.socket, max_connections=1)
    answers = client.ask_all(requests.ping() for _ in range(600))
    next(answers)
    errors: List[Exception] = []

    def wait() -> None:
        try:
            client.ping()
        except ValueError as error:
            errors.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    client.close()
    for thread in threads:
        thread.join(2)
    assert len(errors) == 3
    assert len(list(answers)) == 599


def test_a_failed_connection_frees_its_slot() -> None:
    def fail() -> Connection:
        raise gloved.ConnectionFailed("no daemon")

    pool = Pool(fail, 1)
    for _ in range(3):
        with pytest.raises(gloved.ConnectionFailed):
            pool.take(1)
    assert not pool._taken


def test_stale_connections_are_not_used() -> None:
    def one(peer: Peer) -> None:
        peer.answer(2)

    with serving(one) as server, gloved.Client(server.socket, retries=0) as client:
        for _ in range(3):
            client.ping()
            time.sleep(0.02)
    assert [len(lines) for lines in server.lines] == [1, 1, 1]


def test_a_child_opens_its_own_connections(client: gloved.Client) -> None:
    expected = client.near("king")
    parents = client._pool._idle[0]

    def check() -> bool:
        assert not client._pool._idle
        same = client.near("king") == expected
        return same and client._pool._idle[0] is not parents

    in_child(check)
    assert client.near("king") == expected
    assert client._pool._idle == [parents]


def test_parent_and_child_go_on_with_a_pipeline(client: gloved.Client) -> None:
    expected = {word: client.sim("king", word) for word in WORDS}
    answers = client.ask_all(requests.sim("king", word) for word in WORDS * 100)
    assert [next(answers) for _ in WORDS] == [expected[word] for word in WORDS]
    rest = [expected[word] for word in WORDS * 99]

    def check() -> bool:
        return list(answers) == rest and not client._pool._taken

    in_child(check)
    assert list(answers) == rest


def test_a_child_drops_its_parents_pipeline(client: gloved.Client) -> None:
    answers = client.ask_all(requests.ping() for _ in range(600))
    next(answers)

    def check() -> bool:
        answers.close()  # type: ignore[attr-defined]
        client.ping()
        client.close()
        return not client._pool._taken

    in_child(check)
    assert len(list(answers)) == 599


def test_a_child_keeps_none_of_its_parents_sockets(client: gloved.Client) -> None:
    """The daemon would not see that the parent closes."""
    answers = client.ask_all(requests.ping() for _ in range(600))
    next(answers)
    client.ping()
    borrowed = [place.connection for place in client._pool._taken]
    idle = list(client._pool._idle)
    descriptors = [each._socket.fileno() for each in borrowed + idle]
    assert len(descriptors) == 2 and min(descriptors) >= 0

    def check() -> bool:
        for each in descriptors:
            try:
                os.fstat(each)
            except OSError:
                continue
            return False
        return True

    in_child(check)
    answers.close()  # type: ignore[attr-defined]


def test_a_fork_while_other_threads_ask(client: gloved.Client) -> None:
    expected = client.near("king")
    stop = threading.Event()
    faults: List[object] = []

    def ask() -> None:
        while not stop.is_set():
            answer = client.near("king")
            if answer != expected:
                faults.append(answer)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            in_child(lambda: client.near("king") == expected)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults


@pytest.mark.parametrize("what", ["read_words", "rows"])
def test_a_fork_while_a_thread_reads_the_model(
    client: gloved.Client, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    read = getattr(_snapshot, what)
    reading, forked = threading.Event(), threading.Event()

    def wait_and_read(*arguments: Any) -> Any:
        reading.set()
        forked.wait(30)
        return read(*arguments)

    monkeypatch.setattr(_snapshot, what, wait_and_read)
    vectors = gloved.KeyedVectors(client)
    expected = client.vec(["king"])[0].tolist()
    thread = threading.Thread(target=lambda: vectors.vectors)
    thread.start()

    def check() -> bool:
        monkeypatch.undo()
        index = vectors.index_to_key.index("king")
        return vectors.vectors[index].tolist() == expected

    try:
        assert reading.wait(30)
        in_child(check)
    finally:
        forked.set()
        thread.join()
    assert check()


def test_a_closed_client_is_closed_in_a_child(daemon: conftest.Daemon) -> None:
    client = gloved.Client(daemon.socket)
    client.ping()
    client.close()

    def check() -> bool:
        with pytest.raises(ValueError):
            client.ping()
        return True

    in_child(check)


_shared: List[gloved.Client] = []


def _near_of_shared(word: str) -> List[str]:
    return [each.word for each in _shared[0].near(word)]


def test_multiprocessing(client: gloved.Client) -> None:
    expected = [[each.word for each in client.near(word)] for word in WORDS]
    _shared.append(client)
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(_near_of_shared, WORDS, chunksize=1) == expected
    finally:
        _shared.clear()
