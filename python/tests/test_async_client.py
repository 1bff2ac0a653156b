"""AsyncClient: sharing, cancelling, restarts, loops, and what is left when it closes."""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
import socket
import time
import warnings
from typing import Any, AsyncIterator, Awaitable, Coroutine, Iterator, List, TypeVar

import conftest
import pytest
from fake import OK, Peer, serving
from test_pool import in_child

import gloved
from gloved import _dispatcher, requests
from gloved._wire import MAX_UNANSWERED

T = TypeVar("T")
WORDS = ["king", "queen", "man", "woman", "paris", "france", "snake", "fish"]


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs it in a loop of its own; no task and no connection may be left."""

    async def checked() -> T:
        result = await asyncio.wait_for(main, 20)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    result = asyncio.run(checked())
    links = [each for each in gc.get_objects() if isinstance(each, _dispatcher._Link)]
    # One that could not connect has no socket.
    sockets = [vars(link).get("_socket") for link in links]
    assert [each for each in sockets if each is not None and each.fileno() >= 0] == []
    return result


def numbered(count: int, size: int = 0) -> List[requests.Request[str]]:
    """Requests that `echo` answers with their own line."""
    return [
        requests.Request(b"PING %d " % i + b"x" * size, lambda reply: str(reply["line"]))
        for i in range(count)
    ]


def echo(peer: Peer) -> None:
    while True:
        line = peer.line()
        if not line:
            return
        peer.send(b'{"ok":true,"line":"%s"}\n' % b" ".join(line.split(b" ")[:2]))


def slow_echo(peer: Peer) -> None:
    """Reads 1,000 requests before it answers the first."""
    peer.answer(1)
    time.sleep(0.1)
    echo(peer)


def test_methods_are_those_of_client() -> None:
    for name in requests.__all__:
        if name in ("Expression", "Request"):
            continue
        method, sync = getattr(gloved.AsyncClient, name), getattr(gloved.Client, name)
        assert inspect.iscoroutinefunction(method)
        assert inspect.signature(method) == inspect.signature(sync)
        assert method.__doc__ == sync.__doc__ == getattr(requests, name).__doc__
    assert list(inspect.signature(gloved.AsyncClient("/nowhere").sim).parameters) == [
        "a", "b", "norm", "unknown", "case", "model"
    ]
    assert inspect.signature(gloved.Client.sim).return_annotation == "float"


def test_coroutines_share_a_connection(daemon: conftest.Daemon, client: gloved.Client) -> None:
    expected = {word: client.near(word) for word in WORDS}
    begun = client.stats()["connections_total"]

    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as asked:
            answers = await asyncio.gather(*(asked.near(word) for word in WORDS * 100))
            assert answers == [expected[word] for word in WORDS * 100]
            assert len(asyncio.all_tasks()) == 2

    run(main())
    assert client.stats()["connections_total"] == begun + 1


def test_several_connections(daemon: conftest.Daemon, client: gloved.Client) -> None:
    begun = client.stats()["connections_total"]

    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket, connections=3) as asked:
            await asked.ping()
            await asked.ping()
            answers = [
                answer async for answer in asked.ask_all(requests.near(word) for word in WORDS * 50)
            ]
            assert answers == [client.near(word) for word in WORDS] * 50

    run(main())
    assert client.stats()["connections_total"] == begun + 3


def test_at_most_256_are_unanswered_and_others_wait_in_order() -> None:
    unread: List[int] = []

    def watch(peer: Peer) -> None:
        peer.answer(1)
        time.sleep(0.1)
        for _ in range(MAX_UNANSWERED):
            peer.line()
        peer._connection.settimeout(0.1)
        unread.append(len(peer.line()))
        peer._connection.settimeout(None)
        for number in range(MAX_UNANSWERED):
            peer.send(b'{"ok":true,"line":"PING %d"}\n' % number)
        peer._file = peer._connection.makefile("rb")
        echo(peer)

    async def main() -> None:
        finished: List[str] = []
        async with gloved.AsyncClient(server.socket) as asked:

            async def one(request: requests.Request[str]) -> None:
                finished.append(await asked.ask(request))

            await asyncio.gather(*map(one, numbered(700)))
        assert finished == [f"PING {number}" for number in range(700)]

    with serving(watch) as server:
        run(main())
    assert unread == [0]
    assert server.all_lines == [request.line for request in numbered(700)]


def test_requests_of_many_mib_at_once() -> None:
    async def main() -> None:
        async with gloved.AsyncClient(server.socket) as asked:
            calls = (asked.ask(request) for request in numbered(300, 50_000))
            answers = await asyncio.gather(*calls)
            assert answers == [f"PING {number}" for number in range(300)]

    with serving(slow_echo) as server:
        run(main())


def test_cancelled_calls_do_not_disturb_others() -> None:
    async def main() -> None:
        async with gloved.AsyncClient(server.socket) as asked:
            tasks = [asyncio.ensure_future(asked.ask(request)) for request in numbered(600)]
            await asyncio.sleep(0.02)
            # Some are sent, some wait.
            for task in tasks[::3]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            for number, answer in enumerate(answers):
                if number % 3 == 0:
                    assert isinstance(answer, asyncio.CancelledError)
                else:
                    assert answer == f"PING {number}"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(asked.ask(requests.reload()), 0.01)
            assert await asked.ask(numbered(1)[0]) == "PING 0"

    with serving(slow_echo, Peer.ignore) as server:
        run(main())
    # What was cancelled before it was sent is not sent.
    assert 400 <= len(server.lines[0]) < 600


def test_a_cancelled_call_is_not_asked_again() -> None:
    def die(peer: Peer) -> None:
        peer.answer(1)
        peer.line()
        time.sleep(0.05)

    async def main() -> None:
        async with gloved.AsyncClient(server.socket) as asked:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(asked.ask(requests.ping()), 0.02)
            await asyncio.sleep(0.15)

    with serving(die, echo) as server:
        run(main())
    assert server.all_lines == [b"PING"]


def test_a_cancelled_reload_is_not_sent_again() -> None:
    async def main() -> None:
        async with gloved.AsyncClient(server.socket) as asked:
            reloading = asyncio.ensure_future(asked.reload())
            while not asked._dispatcher or not asked._dispatcher._delayed:
                await asyncio.sleep(0)
            reloading.cancel()
            await asyncio.sleep(0.1)

    with serving(lambda peer: peer.send(b"ERR busy\n"), Peer.serve) as server:
        run(main())
    assert len(server.lines) == 1


def test_each_call_raises_an_error_of_its_own() -> None:
    async def main() -> None:
        async with gloved.AsyncClient(server.socket, retries=0) as asked:
            calls = (asked.ask(request) for request in numbered(5))
            errors = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(error) for error in errors} == {gloved.ConnectionFailed}
            # They would share a traceback.
            assert len(set(map(id, errors))) == 5

    with serving(lambda peer: peer.answer(1)) as server:
        run(main())


async def delayed(items: List[T]) -> AsyncIterator[T]:
    for item in items:
        await asyncio.sleep(0)
        yield item


def test_ask_all(daemon: conftest.Daemon, client: gloved.Client) -> None:
    expected = [client.sim("king", word) for word in WORDS]
    taken = 0

    def counted() -> Iterator[requests.Request[float]]:
        nonlocal taken
        for word in WORDS * 200:
            taken += 1
            yield requests.sim("king", word)

    async def main() -> None:
        nonlocal taken
        async with gloved.AsyncClient(daemon.socket) as asked:
            number = 0
            async for answer in asked.ask_all(counted()):
                assert answer == expected[number % 8]
                number += 1
                assert taken <= number + MAX_UNANSWERED
            assert number == 1_600
            source = [requests.sim("king", word) for word in WORDS * 100]
            answers = [answer async for answer in asked.ask_all(delayed(source))]
            assert answers == expected * 100
            assert [answer async for answer in asked.ask_all([])] == []
            assert [answer async for answer in asked.ask_all(delayed([]))] == []

    run(main())


def test_answers_do_not_wait_for_a_slow_source(daemon: conftest.Daemon) -> None:
    async def main() -> None:
        source: asyncio.Queue[str] = asyncio.Queue()

        async def asked_later() -> AsyncIterator[requests.Request[float]]:
            while True:
                yield requests.sim("king", await source.get())

        async with gloved.AsyncClient(daemon.socket) as asked:
            await source.put("queen")
            answers = asked.ask_all(asked_later())
            for word in WORDS:
                # The next request comes once there is an answer to this one.
                await asyncio.wait_for(answers.__anext__(), 5)
                await source.put(word)
            await answers.aclose()  # type: ignore[attr-defined]

    run(main())


def test_errors_within_a_pipeline(daemon: conftest.Daemon) -> None:
    source = [requests.sim("king", word) for word in ("queen", "Kingg", "man")]

    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as asked:
            each: Any
            for each in (source, delayed(source)):
                first, second, third = [
                    answer async for answer in asked.ask_all(each, return_exceptions=True)
                ]
                assert isinstance(second, gloved.UnknownWord)
                assert isinstance(first, float) and isinstance(third, float)
            for each in (source, delayed(source)):
                got = []
                with pytest.raises(gloved.UnknownWord):
                    async for answer in asked.ask_all(each):
                        got.append(answer)
                assert got == [first]

    run(main())


def test_an_error_of_an_async_iterable_comes_after_the_answers(daemon: conftest.Daemon) -> None:
    async def failing() -> AsyncIterator[requests.Request[None]]:
        for _ in range(3):
            yield requests.ping()
        raise gloved.Busy("mine")

    async def main() -> None:
        got = []
        async with gloved.AsyncClient(daemon.socket) as asked:
            with pytest.raises(gloved.Busy, match="mine"):
                async for answer in asked.ask_all(failing()):
                    got.append(answer)
        assert got == [None] * 3

    run(main())


def test_an_abandoned_pipeline_asks_nothing_more() -> None:
    def die(peer: Peer) -> None:
        peer.answer(2)
        for _ in range(200):
            peer.line()

    async def main() -> None:
        async with gloved.AsyncClient(server.socket) as asked:
            answers = asked.ask_all(numbered(600))
            with pytest.raises(gloved.Internal):
                await answers.__anext__()
            await asyncio.sleep(0.1)

    with serving(die, Peer.serve) as server:
        run(main())
    assert len(server.lines) == 1


def test_an_abandoned_pipeline_leaves_nothing_behind(daemon: conftest.Daemon) -> None:
    async def forever() -> AsyncIterator[requests.Request[None]]:
        yield requests.ping()
        await asyncio.sleep(1_000)

    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as asked:
            source: Any
            for source in ((requests.near("king") for _ in range(999)), forever()):
                async for _ in asked.ask_all(source):
                    break
                gc.collect()
                # The loop closes the generator that was left.
                for _ in range(5):
                    await asyncio.sleep(0)
            await asked.ping()

            async def cancelled() -> None:
                async for _ in asked.ask_all(forever()):
                    pass

            task = asyncio.ensure_future(cancelled())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_ends_amid_a_pipeline(
    daemon: conftest.Daemon, client: gloved.Client, number: signal.Signals
) -> None:
    expected = {word: client.near(word) for word in WORDS}

    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as asked:

            async def one(word: str) -> None:
                for _ in range(20):
                    assert await asked.near(word) == expected[word]

            async def pipeline() -> None:
                source = (requests.near(word) for word in WORDS * 200)
                got = [answer async for answer in asked.ask_all(source)]
                assert got == [expected[word] for word in WORDS * 200]

            async def restart() -> None:
                await asyncio.sleep(0.05)
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, daemon.stop, number)
                await loop.run_in_executor(None, daemon.start)
                await loop.shutdown_default_executor()

            await asyncio.gather(restart(), pipeline(), *map(one, WORDS * 10))

    run(main())


def test_a_daemon_that_is_away(daemon: conftest.Daemon) -> None:
    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket, retries=2) as asked:
            await asked.ping()
            daemon.stop()
            try:
                failed = await asyncio.gather(
                    *(asked.ping() for _ in range(300)), return_exceptions=True
                )
                assert {type(error) for error in failed} == {gloved.ConnectionFailed}
            finally:
                daemon.start()
            await asked.ping()

    run(main())


def test_reload_does_not_hold_up_others() -> None:
    def slow_reload(peer: Peer) -> None:
        while True:
            line = peer.line()
            if not line:
                return
            if line == b"RELOAD":
                time.sleep(0.3)
            peer.send(OK)

    async def main() -> None:
        async with gloved.AsyncClient(server.socket, timeout=0.1) as asked:
            reloading = asyncio.ensure_future(asked.reload())
            await asyncio.sleep(0)
            for _ in range(10):
                await asked.ping()
            assert not reloading.done()
            assert await reloading == []

    with serving(slow_reload) as server:
        run(main())


def test_a_timeout_fails_those_that_waited_so_long() -> None:
    async def main() -> None:
        async with gloved.AsyncClient(server.socket, timeout=0.2) as asked:
            first = asyncio.ensure_future(asked.ask(numbered(1)[0]))
            await asyncio.sleep(0.1)
            second = asyncio.ensure_future(asked.ask(numbered(2)[1]))
            with pytest.raises(gloved.Timeout):
                await first
            # It goes to another connection.
            assert await second == "PING 1"

    with serving(Peer.ignore, echo) as server:
        run(main())


def test_calls_go_elsewhere_once_the_daemon_reads_no_more() -> None:
    def drain(peer: Peer) -> None:
        peer.answer(1)
        peer.line()
        peer._connection.shutdown(socket.SHUT_RD)
        time.sleep(0.4)
        peer.send(b'{"ok":true,"line":"PING 0"}\n')

    async def main() -> None:
        async with gloved.AsyncClient(server.socket) as asked:
            first, second, third = numbered(3)
            pending = asyncio.ensure_future(asked.ask(first))
            await asyncio.sleep(0.1)
            unread = asyncio.ensure_future(asked.ask(second))
            await asyncio.sleep(0.01)
            assert await asked.ask(third) == "PING 2"
            assert not pending.done()
            assert [await pending, await unread] == ["PING 0", "PING 1"]

    with serving(drain, echo) as server:
        run(main())


def test_close_ends_calls_that_wait(daemon: conftest.Daemon) -> None:
    async def main(path: str) -> None:
        asked = gloved.AsyncClient(path)
        calls: List[asyncio.Future[Any]] = [
            asyncio.ensure_future(asked.ask(request)) for request in numbered(600)
        ]
        calls.append(asyncio.ensure_future(asked.reload()))
        await asyncio.sleep(0.02)
        await asked.close()
        for error in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(error, ValueError) and "the client is closed" in str(error)
        with pytest.raises(ValueError, match="the client is closed"):
            await asked.ping()
        await asked.close()

    with serving(Peer.ignore) as server:
        run(main(server.socket))
    run(main("/nowhere"))


def test_a_client_that_was_never_asked() -> None:
    async def main() -> None:
        async with gloved.AsyncClient("/nowhere"):
            pass

    run(main())


def test_a_client_belongs_to_one_loop(daemon: conftest.Daemon) -> None:
    # Made without a loop.
    asked = gloved.AsyncClient(daemon.socket)
    asyncio.run(asked.ping())

    async def again() -> None:
        with pytest.raises(RuntimeError, match="belongs to another event loop"):
            await asked.ping()
        with pytest.raises(RuntimeError, match="belongs to another event loop"):
            async for _ in asked.ask_all([requests.ping()]):
                pass
        # Its loop is over, so that any other may close it.
        await asked.close()

    asyncio.run(again())


def test_close_in_another_loop_is_refused(daemon: conftest.Daemon) -> None:
    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as asked:
            await asked.ping()
            loop = asyncio.get_running_loop()

            def elsewhere() -> None:
                with pytest.raises(RuntimeError, match="another event loop"):
                    asyncio.run(asked.close())

            await loop.run_in_executor(None, elsewhere)
            await loop.shutdown_default_executor()
            await asked.ping()

    run(main())


def test_a_client_that_nobody_closes_warns_and_closes(daemon: conftest.Daemon) -> None:
    async def main() -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await gloved.AsyncClient(daemon.socket).ping()
            gc.collect()
        assert [str(each.message) for each in caught] == ["an AsyncClient was not closed"]
        assert caught[0].category is ResourceWarning
        await asyncio.sleep(0.01)

    run(main())


def test_a_child_does_not_disturb_its_parents_loop(daemon: conftest.Daemon) -> None:
    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as asked:
            await asked.ping()
            calls = [asyncio.ensure_future(asked.near("king")) for _ in range(300)]
            await asyncio.sleep(0)

            def check() -> bool:
                asyncio.events._set_running_loop(None)
                asyncio.run(asked.close())
                return True

            in_child(check)
            assert len(set(map(str, await asyncio.gather(*calls)))) == 1
            await asked.ping()

    run(main())


def test_large_answers(daemon: conftest.Daemon, client: gloved.Client) -> None:
    words = [word.word for word in client.prefix("s", k=500)]

    async def main() -> None:
        async with gloved.AsyncClient(daemon.socket) as asked:
            nearest, matrix, score = await asyncio.gather(
                asked.near("king", k=65_536), asked.matrix(words), asked.sim(words[3], words[400])
            )
            assert len(nearest) == 10_001
            assert len(matrix) == 500
            assert matrix[3][400] == score

    run(main())


def awaits(answer: Awaitable[float]) -> Awaitable[float]:
    """For mypy: a method returns an awaitable of what its verb returns."""
    return answer


def test_types_are_kept() -> None:
    call = gloved.AsyncClient("/nowhere").sim("king", "queen")
    awaits(call)
    call.close()
