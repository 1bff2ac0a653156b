"""A client for asyncio: coroutines share a connection, one method a verb."""

from __future__ import annotations

import asyncio
import copy
import functools
import heapq
import itertools
import os
import warnings
from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Deque,
    Dict,
    Iterable,
    List,
    Optional,
    Set,
    Tuple,
    TypeVar,
    Union,
)

from . import _socket, requests
from ._retry import Asked, Patience, check_options, passes
from ._verb import describe
from ._wire import MAX_UNANSWERED, Conversation, Outcome, Request
from .errors import ConnectionFailed, GlovedError, Internal, copy_to_raise

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")


def _verb(
    build: Callable[P, Request[T]]
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.ask(build(*args, **kwargs))

    return describe(method, build)


class AsyncClient:
    """Asks a gloved daemon from coroutines of one event loop, which share its connections.

        async with AsyncClient() as client:
            await client.near("king")

    Each method is a verb of the protocol and takes the arguments of the function of that name in
    gloved.requests. Calls that run side by side are pipelined. A connection has at most 256
    unanswered requests; further calls wait, and go on in the order in which they began. A call
    that is cancelled does not disturb the others.

    socket    the daemon's socket. By default that of gloved-client: $GLOVED_SOCKET, or else
              $XDG_RUNTIME_DIR/gloved.sock, or else /run/gloved/gloved.sock
    model     the model that is asked unless a call names another; by default the daemon's first
    timeout   seconds in which an answer must be there, whole, after the one before it; a try that
              fails begins them again. RELOAD takes as long as it takes
    retries   how often a call begins again when the daemon is busy, restarts or closes the
              connection, with delays from 10 ms to 1 s; RELOAD is not sent twice
    connections  shared connections, opened when those before have unanswered requests. Answers of
              many MiB hold up those behind them on the same one. RELOAD has one of its own

    Errors of the daemon are GlovedError, by code. The client belongs to the loop in which it is
    first asked; it may be made before that, without a loop.
    """

    # Of one whose arguments were refused, too.
    _dispatcher: Optional[_Dispatcher] = None
    _closed = False

    def __init__(
        self,
        socket: Optional[_socket.Path] = None,
        *,
        model: Optional[str] = None,
        timeout: float = 30.0,
        retries: int = 10,
        connections: int = 1,
    ) -> None:
        check_options(socket, model, timeout, retries)
        if connections < 1:
            raise ValueError(f"connections is {connections}: it must be at least 1")
        self.model = model
        self._socket = socket
        self._timeout = timeout
        self._retries = retries
        self._connections = connections

    near = _verb(requests.near)
    near_vector = _verb(requests.near_vector)
    analogy = _verb(requests.analogy)
    rank = _verb(requests.rank)
    ranked = _verb(requests.ranked)
    sim = _verb(requests.sim)
    dist = _verb(requests.dist)
    odd = _verb(requests.odd)
    matrix = _verb(requests.matrix)
    vec = _verb(requests.vec)
    prefix = _verb(requests.prefix)
    has = _verb(requests.has)
    lists = _verb(requests.lists)
    models = _verb(requests.models)
    reload = _verb(requests.reload)
    stats = _verb(requests.stats)
    prometheus = _verb(requests.prometheus)
    ping = _verb(requests.ping)
    help = _verb(requests.help)

    def __reduce__(self) -> Tuple[Any, ...]:
        """A copy, or what another process unpickles, has the same options, and connections of its
        own."""
        make = functools.partial(
            type(self),
            model=self.model,
            timeout=self._timeout,
            retries=self._retries,
            connections=self._connections,
        )
        return make, (self._socket,)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. Calls that wait for an answer, and later ones, raise ValueError.

        No task is left: the client has none.
        """
        if self._dispatcher is not None:
            if not self._dispatcher.is_orphan():
                self._dispatcher.check_loop(asyncio.get_running_loop())
            self._dispatcher.close()
        self._closed = True

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if self._dispatcher is None or self._closed:
            return
        if not self._dispatcher.is_of_parent():
            _warn("an AsyncClient was not closed", ResourceWarning, source=self)
        if self._dispatcher.is_orphan():
            self._dispatcher.close()
        else:
            # The garbage may be collected in another thread than the loop's.
            self._dispatcher.loop.call_soon_threadsafe(self._dispatcher.close)

    async def ask(self, request: Request[T]) -> T:
        """The answer to one request."""
        call = self._begin(request, None)
        outcome = await call.future
        if isinstance(outcome, Exception):
            raise copy_to_raise(outcome)
        answer: T = outcome
        return answer

    async def ask_all(
        self,
        asked: Union[Iterable[Request[Any]], AsyncIterable[Request[Any]]],
        *,
        return_exceptions: bool = False,
    ) -> AsyncIterator[Any]:
        """The answers to many requests, in their order.

        Requests are taken from the iterable a few hundred ahead of the answers, so neither needs
        to fit in memory. An error of one request is raised when its turn comes, which ends the
        iteration; with return_exceptions=True it takes the place of the answer. An error that the
        iterable raises comes after the answers to what it gave before.
        """
        window = _Window(self._begin, MAX_UNANSWERED * self._connections)
        source: Union[_Source, _AsyncSource]
        if isinstance(asked, AsyncIterable):
            source = _AsyncSource(asked)
        else:
            source = _Source(asked)
        try:
            while True:
                await source.fill(window)
                call = window.oldest()
                if call is None:
                    break
                outcome = await call.future
                window.remove_oldest()
                if isinstance(outcome, Exception) and (call.lost or not return_exceptions):
                    raise copy_to_raise(outcome)
                yield outcome
            source.raise_error()
        finally:
            window.cancel()
            await source.close()

    def _begin(self, request: Request[Any], progress: Optional[_Progress]) -> _Call:
        loop = asyncio.get_running_loop()
        if self._closed:
            raise _closed_error()
        if self._dispatcher is None:
            self._dispatcher = _Dispatcher(
                loop, self._socket, self.model, self._timeout, self._connections
            )
        self._dispatcher.check_loop(loop)
        call = _Call(request, loop.create_future(), Patience(self._retries), progress)
        self._dispatcher.dispatch(call)
        return call


def _closed_error() -> ValueError:
    return ValueError("the client is closed")


class _Progress:
    """How many answers an ask_all has had: each restores the patience of the others."""

    answers = 0


_numbers = itertools.count()


class _Call:
    """A request until its answer.

    future has the answer or the error as its result, so that nobody needs to fetch an exception.
    """

    def __init__(
        self,
        request: Request[Any],
        future: asyncio.Future[Any],
        patience: Patience,
        progress: Optional[_Progress],
    ) -> None:
        self.request = request
        self.future = future
        self.number = next(_numbers)
        """Calls with smaller numbers began before."""
        self.sent_at = 0.0
        self.lost = False
        """Whether the error is not the daemon's answer to this request."""
        self._patience = patience
        self._progress = progress
        self._answers_seen = 0

    def __lt__(self, other: _Call) -> bool:
        return self.number < other.number

    def next_delay(self, error: GlovedError) -> Optional[float]:
        if self._progress is not None and self._progress.answers != self._answers_seen:
            self._answers_seen = self._progress.answers
            self._patience.restore()
        return self._patience.next_delay(error)

    def finish(self, outcome: object) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class _Dispatcher:
    """The connections of a client, and its calls that are not sent yet. Runs in one loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        path: Optional[_socket.Path],
        model: Optional[str],
        timeout: float,
        connections: int,
    ) -> None:
        self.loop = loop
        self._process = os.getpid()
        self._path = path
        self._model = model
        self._timeout = timeout
        self._connections = connections
        self._shared: List[_Link] = []
        # Those that take no more requests, and those of a RELOAD.
        self._others: Set[_Link] = set()
        # A heap: a call that is asked again goes before those that began later.
        self._waiting: List[_Call] = []
        self._delayed: Dict[_Call, asyncio.TimerHandle] = {}

    def check_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self.loop:
            raise RuntimeError(
                "this AsyncClient belongs to another event loop: make one for each loop"
            )

    def is_orphan(self) -> bool:
        """Whether the loop is over, or runs in another process."""
        return self.loop.is_closed() or self.is_of_parent()

    def is_of_parent(self) -> bool:
        """Whether this process is a child of a fork."""
        return self._process != os.getpid()

    def dispatch(self, call: _Call) -> None:
        """Sends the request as soon as there is room for it."""
        if call.request.repeatable:
            heapq.heappush(self._waiting, call)
            self.send_waiting()
            return
        # It may take minutes, and the answers to those behind it would wait.
        try:
            link = self._open()
        except ConnectionFailed as error:
            self.ask_again(call, error)
            return
        self._others.add(link)
        link.ask(call)

    def send_waiting(self) -> None:
        while self._waiting:
            if self._waiting[0].future.done():
                # Cancelled.
                heapq.heappop(self._waiting)
                continue
            try:
                link = self._link_with_room()
            except ConnectionFailed as error:
                calls, self._waiting = sorted(self._waiting), []
                for call in calls:
                    self.ask_again(call, error)
                return
            if link is None:
                return
            link.ask(heapq.heappop(self._waiting))

    def _open(self) -> _Link:
        return _Link(self, self._path, self._model, self._timeout)

    def _link_with_room(self) -> Optional[_Link]:
        """The connection with the fewest requests, or a new one; None if all are full."""
        best = None
        for each in self._shared:
            if each.has_room() and (best is None or len(each.calls) < len(best.calls)):
                best = each
        if (best is not None and not best.calls) or len(self._shared) >= self._connections:
            return best
        try:
            opened = self._open()
        except ConnectionFailed:
            if best is None:
                raise
            return best
        self._shared.append(opened)
        return opened

    def retire(self, link: _Link) -> None:
        """The link takes no more requests: others go elsewhere while it ends."""
        if link in self._shared:
            self._shared.remove(link)
            self._others.add(link)
            self.send_waiting()

    def remove(self, link: _Link) -> None:
        self._others.discard(link)
        if link in self._shared:
            self._shared.remove(link)

    def answer(self, call: _Call, outcome: Outcome[Any]) -> None:
        if call.request.repeatable and passes(outcome):
            assert isinstance(outcome, GlovedError)
            self.ask_again(call, outcome)
        else:
            call.finish(outcome)

    def ask_again(self, call: _Call, error: GlovedError) -> None:
        """Dispatches the call again after a delay, or ends it with the error."""
        if call.future.done():
            return
        delay = call.next_delay(error)
        if delay is None:
            self.lose(call, error)
        else:
            self._delayed[call] = self.loop.call_later(delay, self._end_delay, call)

    def _end_delay(self, call: _Call) -> None:
        del self._delayed[call]
        if not call.future.done():
            self.dispatch(call)

    def lose(self, call: _Call, error: GlovedError) -> None:
        """Ends the call with an error that is not the daemon's answer to it."""
        call.lost = True
        # Each call raises an object of its own: they would share a traceback.
        call.finish(copy.copy(error))

    def close(self) -> None:
        links = self._shared + list(self._others)
        calls = [*self._waiting, *self._delayed]
        for link in links:
            calls += link.calls
            link.close()
        if not self.is_orphan():
            for handle in self._delayed.values():
                handle.cancel()
            for call in calls:
                call.lost = True
                call.finish(_closed_error())
        self._shared.clear()
        self._others.clear()
        self._waiting.clear()
        self._delayed.clear()


class _Link:
    """A connection that the loop reads and writes.

    ConnectionFailed: no daemon listens at the socket.
    """

    def __init__(
        self,
        dispatcher: _Dispatcher,
        path: Optional[_socket.Path],
        model: Optional[str],
        timeout: float,
    ) -> None:
        self.calls: Deque[_Call] = deque()
        """Those that were sent and have no answer yet, oldest first."""
        self._conversation = Conversation(model)
        self._dispatcher = dispatcher
        self._loop = dispatcher.loop
        self._process = os.getpid()
        self._timeout = timeout
        self._timer: Optional[asyncio.TimerHandle] = None
        # When the last answer came, or when the first of the calls was sent if that is later.
        self._answered_at = 0.0
        self._timer_is_due_at = 0.0
        self._waits_to_write = False
        self._flush_is_due = False
        self._socket = _socket.connect(path)
        try:
            self._loop.add_reader(self._socket, self._read)
        except BaseException:
            self._socket.close()
            raise

    def has_room(self) -> bool:
        return self._conversation.has_room()

    def ask(self, call: _Call) -> None:
        call.sent_at = self._loop.time()
        if not self.calls:
            self._answered_at = call.sent_at
        self.calls.append(call)
        self._conversation.ask(call.request)
        if self._timer is None:
            self._set_timer(self._timeout)
        if not self._flush_is_due and not self._waits_to_write:
            # What other coroutines ask in the same turn of the loop is sent together.
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._socket.fileno() >= 0:
            self._write()

    def _write(self) -> None:
        outgoing = self._conversation.outgoing
        was_full = not self.has_room()
        if not _socket.send(self._socket, outgoing):
            self._dispatcher.retire(self)
        if bool(outgoing) != self._waits_to_write:
            self._waits_to_write = bool(outgoing)
            if outgoing:
                self._loop.add_writer(self._socket, self._write)
            else:
                self._loop.remove_writer(self._socket)
        if was_full and self.has_room():
            self._dispatcher.send_waiting()

    def _read(self) -> None:
        try:
            data = _socket.receive(self._socket)
        except BlockingIOError:
            return
        except ConnectionFailed as error:
            self._end(error)
            return
        try:
            self._take(data)
        except BaseException:
            # The loop only logs a bug: nobody may wait for ever because of it.
            self._end(Internal("the client failed to read an answer: see asyncio's log"))
            raise

    def _take(self, data: bytes) -> None:
        answers = self._conversation.receive(data)
        if answers:
            self._answered_at = self._loop.time()
        for request, outcome in answers:
            call = self.calls.popleft()
            assert call.request is request
            self._dispatcher.answer(call, outcome)
            if not request.repeatable:
                self._end(ConnectionFailed("the connection was for one request"))
                return
        if self._conversation.ended is not None:
            self._end(self._conversation.ended)
        else:
            self._dispatcher.send_waiting()

    def _set_timer(self, seconds: float) -> None:
        self._timer_is_due_at = self._loop.time() + seconds
        self._timer = self._loop.call_later(seconds, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if not self.calls:
            return
        now = self._loop.time()
        # While other code held up the loop, nothing could be read.
        self._answered_at += now - self._timer_is_due_at
        remaining = self._answered_at + self._timeout - now
        if self._conversation.takes_its_time():
            self._set_timer(self._timeout)
        elif remaining > 0:
            self._set_timer(remaining)
        else:
            late = self._conversation.late(self._timeout)
            waiting, self.calls = self.calls, deque()
            while waiting and waiting[0].sent_at + self._timeout <= now:
                self._dispatcher.lose(waiting.popleft(), late)
            # The others were sent a moment ago: another connection may answer them in time.
            self.calls = waiting
            self._end(ConnectionFailed("gloved does not answer on this connection"))

    def _end(self, error: GlovedError) -> None:
        """Closes, and asks the calls again elsewhere; those that must not be end with the error."""
        self.close()
        self._dispatcher.remove(self)
        may_ask_again = self._conversation.nothing_read
        calls, self.calls = self.calls, deque()
        for call in calls:
            if may_ask_again or call.request.repeatable:
                self._dispatcher.ask_again(call, error)
            else:
                self._dispatcher.lose(call, error)
        self._dispatcher.send_waiting()

    def close(self) -> None:
        # After a fork the child shares the selector with its parent, which goes on using it.
        if self._process == os.getpid() and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            if self._timer is not None:
                self._timer.cancel()
        self._timer = None
        self._socket.close()


class _Window:
    """The calls of an ask_all, oldest first. A request that is not repeatable runs alone."""

    def __init__(
        self, begin: Callable[[Request[Any], Optional[_Progress]], _Call], size: int
    ) -> None:
        self._begin = begin
        self._size = size
        self._calls: Deque[_Call] = deque()
        self._held: Optional[Request[Any]] = None
        self._progress = _Progress()

    def has_room(self) -> bool:
        return self._held is None and len(self._calls) < self._size

    def add(self, request: Request[Any]) -> None:
        self._held = request
        self._begin_held()

    def _begin_held(self) -> None:
        request = self._held
        if request is not None and (
            not self._calls or (request.repeatable and self._calls[-1].request.repeatable)
        ):
            self._held = None
            self._calls.append(self._begin(request, self._progress))

    def oldest(self) -> Optional[_Call]:
        return self._calls[0] if self._calls else None

    def remove_oldest(self) -> None:
        self._calls.popleft()
        self._progress.answers += 1
        self._begin_held()

    def cancel(self) -> None:
        for call in self._calls:
            call.future.cancel()
        self._calls.clear()


class _Source:
    """The requests of an iterable."""

    def __init__(self, asked: Iterable[Request[Any]]) -> None:
        self._asked = Asked(iter(asked))

    async def fill(self, window: _Window) -> None:
        """Adds requests to the window while it has room for them."""
        while window.has_room():
            request = self._asked.peek()
            if request is None:
                return
            self._asked.pop()
            window.add(request)

    def raise_error(self) -> None:
        """Raises the error that ended the requests, if one did."""
        self._asked.raise_error()

    async def close(self) -> None:
        pass


class _AsyncSource:
    """The requests of an asynchronous iterable, which may take its time for each."""

    def __init__(self, asked: AsyncIterable[Request[Any]]) -> None:
        self._iterator: Optional[AsyncIterator[Request[Any]]] = asked.__aiter__()
        self._next: Optional[asyncio.Future[Request[Any]]] = None
        self._error: Optional[BaseException] = None

    async def fill(self, window: _Window) -> None:
        """Adds requests while the window has room for them and its oldest call has no answer."""
        while self._iterator is not None and window.has_room():
            if self._next is None:
                self._next = asyncio.ensure_future(self._iterator.__anext__())
            oldest = window.oldest()
            if not self._next.done():
                awaited: Tuple[asyncio.Future[Any], ...] = (self._next,)
                if oldest is not None:
                    awaited += (oldest.future,)
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not self._next.done():
                return
            self._take(window)

    def _take(self, window: _Window) -> None:
        done, self._next = self._next, None
        assert done is not None
        # It is not raised here, or it would keep this frame, and with it the task.
        error = done.exception()
        if error is None:
            window.add(done.result())
            return
        self._iterator = None
        if not isinstance(error, StopAsyncIteration):
            self._error = error

    def raise_error(self) -> None:
        """Raises the error that ended the requests, if one did."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error

    async def close(self) -> None:
        """Ends the task that waits for the next request."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait((self._next,))
            if not self._next.cancelled():
                self._next.exception()
