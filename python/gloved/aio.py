"""A client for asyncio: coroutines share a connection, one method a verb."""

from __future__ import annotations

import asyncio
import functools
import warnings
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Optional,
    Tuple,
    TypeVar,
    Union,
)

from . import _socket, requests
from ._dispatcher import Call, Dispatcher, Progress, closed_error
from ._retry import Patience, check_options
from ._verb import describe
from ._window import AsyncSource, Source, Window
from ._wire import MAX_UNANSWERED, Request
from .errors import copy_to_raise

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
    _dispatcher: Optional[Dispatcher] = None
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_socket.described(self._socket, self.model)})"

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
        window = Window(self._begin, MAX_UNANSWERED * self._connections)
        source: Union[Source, AsyncSource]
        if isinstance(asked, AsyncIterable):
            source = AsyncSource(asked)
        else:
            source = Source(asked)
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

    def _begin(self, request: Request[Any], progress: Optional[Progress]) -> Call:
        loop = asyncio.get_running_loop()
        if self._closed:
            raise closed_error()
        if self._dispatcher is None:
            self._dispatcher = Dispatcher(
                loop, self._socket, self.model, self._timeout, self._connections
            )
        self._dispatcher.check_loop(loop)
        call = Call(request, loop.create_future(), Patience(self._retries), progress)
        self._dispatcher.dispatch(call)
        return call
