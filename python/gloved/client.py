"""A client for threads: one method a verb."""

from __future__ import annotations

import functools
import time
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterable,
    Iterator,
    List,
    Optional,
    Tuple,
    TypeVar,
)

from . import _socket, requests
from ._connection import Connection
from ._pool import Pool
from ._retry import Asked, Patience, check_options, first_passing
from ._verb import describe
from ._wire import MAX_UNANSWERED, Conversation, Outcome, Request
from .errors import GlovedError, copy_to_raise

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")


def _verb(build: Callable[P, Request[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.ask(build(*args, **kwargs))

    return describe(method, build)


class Client:
    """Asks a gloved daemon. Threads may share it, and processes after a fork.

    Each method is a verb of the protocol and takes the arguments of the function of that name in
    gloved.requests. Each call borrows a connection from a pool, so calls of several threads run
    side by side.

    socket    the daemon's socket. By default that of gloved-client: $GLOVED_SOCKET, or else
              $XDG_RUNTIME_DIR/gloved.sock, or else /run/gloved/gloved.sock
    model     the model that is asked unless a call names another; by default the daemon's first
    timeout   seconds in which an answer must be there, whole, after the one before it; a try that
              fails begins them again. RELOAD takes as long as it takes
    retries   how often a call begins again when the daemon is busy, restarts or closes the
              connection, with delays from 10 ms to 1 s; RELOAD is not sent twice
    max_connections  calls that run at a time; more wait for one to end

    Errors of the daemon are GlovedError, by code. A client opens its first connection when it is
    first asked.
    """

    def __init__(
        self,
        socket: Optional[_socket.Path] = None,
        *,
        model: Optional[str] = None,
        timeout: float = 30.0,
        retries: int = 10,
        max_connections: int = 64,
    ) -> None:
        check_options(socket, model, timeout, retries)
        self.model = model
        self._socket = socket
        self._max_connections = max_connections
        self._timeout = timeout
        self._retries = retries
        self._pool = Pool(lambda: Connection(socket, model, timeout), max_connections)

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

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        """A copy, or what another process unpickles, has the same options, and connections of its
        own."""
        make = functools.partial(
            type(self),
            model=self.model,
            timeout=self._timeout,
            retries=self._retries,
            max_connections=self._max_connections,
        )
        return make, (self._socket,)

    def close(self) -> None:
        """Closes the connections, each once no call uses it. Later calls raise ValueError."""
        self._pool.close()

    def ask(self, request: Request[T]) -> T:
        """The answer to one request."""
        # The generator runs to its end, so that it gives its connection back.
        (result,) = self.ask_all((request,))
        answer: T = result
        return answer

    def ask_all(
        self,
        asked: Iterable[Request[Any]],
        *,
        return_exceptions: bool = False,
        ahead: int = MAX_UNANSWERED,
    ) -> Iterator[Any]:
        """The answers to many requests, in their order, over one connection.

        Requests are taken from the iterable at most `ahead` before their answers, so neither needs
        to fit in memory: the daemon reads no more than 256. An error of one request is raised when
        its turn comes, which ends the iteration; with return_exceptions=True it takes the place of
        the answer. An error that the iterable raises comes after the answers to what it gave
        before.
        """
        for answers in self._answers(Asked(iter(asked), ahead)):
            for _, outcome in answers:
                if isinstance(outcome, GlovedError) and not return_exceptions:
                    raise copy_to_raise(outcome)
                yield outcome

    def _answers(self, asked: Asked) -> Iterator[List[Tuple[Request[Any], Outcome[Any]]]]:
        """The answers as they come, over as many connections as it takes."""
        patience = Patience(self._retries)
        while asked.peek() is not None:
            place = None
            answered: List[Tuple[Request[Any], Outcome[Any]]] = []
            delay = 0.0
            connection = None
            try:
                place = self._pool.take(self._timeout)
                connection = place.connection
                assert connection is not None
                for answered in connection.exchange(asked):
                    failed = first_passing(answered)
                    if failed > 0:
                        patience.restore()
                        yield answered[:failed]
                    answered = answered[failed:]
                    if answered:
                        raise copy_to_raise(_as_error(answered[0][1]))
            except GlovedError as error:
                if connection is not None and not _may_ask_again(connection.conversation):
                    raise
                next_delay = patience.next_delay(error)
                if next_delay is None:
                    raise
                delay = next_delay
                if connection is not None:
                    asked.put_back(connection.conversation.unanswered)
                    asked.put_back(request for request, _ in answered)
            finally:
                if place is not None:
                    self._pool.put(place)
            if delay > 0:
                time.sleep(delay)
        asked.raise_error()


def _may_ask_again(conversation: Conversation) -> bool:
    return conversation.nothing_read or all(
        request.repeatable for request in conversation.unanswered
    )


def _as_error(outcome: Outcome[Any]) -> GlovedError:
    assert isinstance(outcome, GlovedError)
    return outcome
