"""A client for threads: one method a verb."""

from __future__ import annotations

import functools
import time
from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Deque,
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
from ._retry import Patience, first_passing
from ._wire import Outcome, Request
from .errors import GlovedError

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")


def _verb(build: Callable[P, Request[T]]) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(build)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.ask(build(*args, **kwargs))

    return method


class Client:
    """Asks a gloved daemon. Threads may share it, and processes after a fork.

    Each method is a verb of the protocol and takes the arguments of the function of that name in
    gloved.requests. Each call borrows a connection from a pool, so calls of several threads run
    side by side.

    socket    the daemon's socket. By default that of gloved-client: $GLOVED_SOCKET, or else
              $XDG_RUNTIME_DIR/gloved.sock, or else /run/gloved/gloved.sock
    model     the model that is asked unless a call names another; by default the daemon's first
    timeout   seconds to wait for anything to come; RELOAD waits as long as it takes
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
        self.model = model
        self._timeout = timeout
        self._retries = retries
        self._pool = Pool(lambda: Connection(socket, model, timeout), max_connections)

    near = _verb(requests.near)
    near_vector = _verb(requests.near_vector)
    analogy = _verb(requests.analogy)
    rank = _verb(requests.rank)
    sim = _verb(requests.sim)
    dist = _verb(requests.dist)
    odd = _verb(requests.odd)
    matrix = _verb(requests.matrix)
    vec = _verb(requests.vec)
    prefix = _verb(requests.prefix)
    has = _verb(requests.has)
    models = _verb(requests.models)
    reload = _verb(requests.reload)
    stats = _verb(requests.stats)
    prometheus = _verb(requests.prometheus)
    ping = _verb(requests.ping)
    help = _verb(requests.help)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections, each once no call uses it. Later calls raise ValueError."""
        self._pool.close()

    def ask(self, request: Request[T]) -> T:
        """The answer to one request."""
        result: T = next(self.ask_all((request,)))
        return result

    def ask_all(
        self, asked: Iterable[Request[T]], *, return_exceptions: bool = False
    ) -> Iterator[Any]:
        """The answers to many requests, in their order, over one connection.

        Requests are taken from the iterable a few hundred ahead of the answers, so neither needs
        to fit in memory. An error of one request is raised when its turn comes, which ends the
        iteration; with return_exceptions=True it takes the place of the answer.
        """
        for answers in self._answers(iter(asked)):
            for _, outcome in answers:
                if isinstance(outcome, GlovedError) and not return_exceptions:
                    raise outcome
                yield outcome

    def _answers(
        self, asked: Iterator[Request[Any]]
    ) -> Iterator[List[Tuple[Request[Any], Outcome[Any]]]]:
        """The answers as they come, over as many connections as it takes."""
        first = next(asked, None)
        if first is None:
            return
        waiting = deque((first,))
        patience = Patience(self._retries)
        while True:
            connection = None
            answered: List[Tuple[Request[Any], Outcome[Any]]] = []
            try:
                connection = self._pool.take(self._timeout)
                for answered in connection.exchange(_taken_from(waiting, asked)):
                    failed = first_passing(answered)
                    if failed > 0:
                        patience.restore()
                        yield answered[:failed]
                    del answered[:failed]
                    if answered:
                        raise _as_error(answered[0][1])
                self._pool.put(connection)
                connection = None
                return
            except GlovedError as error:
                delay = patience.next_delay(error)
                if connection is not None:
                    unanswered = connection.conversation.unanswered
                    if connection.conversation.ended is None and not all(
                        request.repeatable for request in unanswered
                    ):
                        raise
                    waiting.extendleft(reversed(unanswered))
                    waiting.extendleft(request for request, _ in reversed(answered))
            finally:
                if connection is not None:
                    self._pool.drop(connection)
            time.sleep(delay)


def _taken_from(
    waiting: Deque[Request[Any]], asked: Iterator[Request[Any]]
) -> Iterator[Request[Any]]:
    """Those that wait, then those that are still to be asked."""
    while waiting:
        yield waiting.popleft()
    yield from asked


def _as_error(outcome: Outcome[Any]) -> GlovedError:
    assert isinstance(outcome, GlovedError)
    return outcome
