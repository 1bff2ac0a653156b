"""Calls of several requests: all of their answers are of one model, or the call has none.

A RELOAD may come between two requests. Each reply tells the generation of the model that gave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, Tuple, Type, TypeVar

from . import _reply
from ._reply import Reply
from ._wire import MAX_UNANSWERED, Request
from .errors import (
    BadRequest,
    GlovedError,
    Internal,
    ModelReplaced,
    UnknownList,
    UnknownWord,
    ZeroVector,
    copy_to_raise,
)

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")

_TRIES = 3
# Another model may not give these errors. They do not tell a generation.
_ERRORS_OF_A_MODEL = (BadRequest, UnknownList, UnknownWord, ZeroVector)


def _with_generation(request: Request[T]) -> Request[Tuple[str, T]]:
    def read(reply: Reply) -> Tuple[str, T]:
        return _reply.generation(reply), request.read(reply)

    return Request(request.line, read)


class OneModel:
    """The requests of one call, to one model of the daemon.

    Its methods raise ModelReplaced as soon as two answers are of different generations.

    generation  that of all answers; None before the first one
    """

    def __init__(self, client: Client, model: Optional[str] = None) -> None:
        self.generation: Optional[str] = None
        self._client = client
        self._model = model
        # Of all vectors; None before the first one.
        self._dim: Optional[int] = None

    def require(self, generation: str) -> None:
        """Takes an answer of this generation."""
        if self.generation is None:
            self.generation = generation
        elif generation != self.generation:
            raise ModelReplaced("the model was replaced while a call asked it; ask again")

    def require_dim(self, dim: int) -> None:
        """Takes vectors of this length. Internal: others of the model have another one."""
        if self._dim is None:
            self._dim = dim
        elif dim != self._dim:
            raise Internal(f"gloved showed vectors of {self._dim} numbers, and of {dim}")

    def ask(self, request: Request[T]) -> T:
        """The answer to one request."""
        try:
            generation, answer = self._client.ask(_with_generation(request))
        except _ERRORS_OF_A_MODEL:
            self._confirm()
            raise
        self.require(generation)
        return answer

    def ask_all(
        self,
        asked: Iterable[Request[Any]],
        accepted: Tuple[Type[GlovedError], ...] = (),
        ahead: int = MAX_UNANSWERED,
        tell_generation: bool = False,
    ) -> Iterator[Any]:
        """The answers to many requests, in their order; at most `ahead` are asked before theirs.
        An error of an accepted class takes the place of its answer. With tell_generation each
        request reads a pair already, of the generation and the answer."""
        if accepted and self.generation is None:
            # The first answer may be an error.
            self.require(self._current())
        if not tell_generation:
            asked = map(_with_generation, asked)
        answers = self._client.ask_all(asked, return_exceptions=True, ahead=ahead)
        is_confirmed = True
        for outcome in answers:
            is_confirmed = not isinstance(outcome, GlovedError)
            if isinstance(outcome, accepted):
                yield outcome
                continue
            if isinstance(outcome, GlovedError):
                # Gives its connection back, which may be the only one.
                answers.close()  # type: ignore[attr-defined]
                if isinstance(outcome, _ERRORS_OF_A_MODEL):
                    self._confirm()
                raise copy_to_raise(outcome)
            generation, answer = outcome
            self.require(generation)
            yield answer
        if not is_confirmed:
            self._confirm()

    def _current(self) -> str:
        return self._client.has(("a",), model=self._model).info.generation

    def _confirm(self) -> None:
        """Checks that an error came from the model that the answers before it came from."""
        if self.generation is not None:
            self.require(self._current())


def of_one_model(make: Callable[[], OneModel], call: Callable[[Any], T]) -> T:
    """The result of a call, which asks through the object that `make` makes.

    The call begins again if the model was replaced meanwhile: its result is of one model.
    ModelReplaced: that happened three times.
    """
    for _ in range(_TRIES):
        try:
            return call(make())
        except ModelReplaced:
            pass
    raise ModelReplaced(f"the model was replaced {_TRIES} times while a call asked it; ask again")
