"""When a request is asked again."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import Any, Deque, Iterable, Iterator, Optional, Sequence, Tuple

from ._socket import Path
from ._wire import MAX_UNANSWERED, Outcome, Request, token
from .errors import AccessDenied, Busy, ConnectionFailed, GlovedError, Idle, Unavailable

_LAST_DELAY_SECONDS = 1.0
_FIRST_DELAY_SECONDS = 0.01


def check_options(
    path: Optional[Path], model: Optional[str], timeout: float, retries: int
) -> None:
    """ValueError, TypeError: a client cannot have these options."""
    if path is not None:
        os.fspath(path)
    if model is not None:
        token("model", model)
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}: it must be a positive number of seconds")
    if retries < 0:
        raise ValueError(f"retries is {retries}: it must not be negative")


def passes(error: object) -> bool:
    """Whether the same request may succeed a moment later, at this daemon or the next one."""
    return isinstance(
        error, (ConnectionFailed, Idle, Busy, Unavailable)
    ) and not isinstance(error, AccessDenied)


@dataclass
class Patience:
    """How often one call still begins again. An answer restores it.

    Delays double from 10 ms to 1 s, so ten retries take 5 seconds: the time in which a supervisor
    starts a new daemon.
    """

    retries: int
    failures: int = 0

    def restore(self) -> None:
        self.failures = 0

    def next_delay(self, error: GlovedError) -> Optional[float]:
        """Seconds to wait before the next try; None if there is none."""
        if not passes(error) or self.failures >= self.retries:
            return None
        self.failures += 1
        # The exponent stays small: a float has no 2 ** 1024.
        doublings = min(self.failures - 1, 16)
        return min(_LAST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2.0**doublings)


def retries_within(seconds: float) -> int:
    """How many retries wait so long in all, after one failure."""
    patience = Patience(retries=2**31)
    waited = 0.0
    while waited < seconds:
        waited += patience.next_delay(Busy("")) or 0.0
    return patience.failures


def first_passing(answers: Sequence[Tuple[Request[Any], Outcome[Any]]]) -> int:
    """The index of the first request that should be asked again; their number if there is none."""
    for index, (request, outcome) in enumerate(answers):
        if request.repeatable and passes(outcome):
            return index
    return len(answers)


class KeepsError:
    """Keeps the error that ended an iterator, until what came before is answered."""

    _error: Optional[BaseException] = None

    def raise_error(self) -> None:
        """Raises the error, if there is one. It is kept no longer."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error


class Asked(KeepsError):
    """The requests of one call: those that are asked again, then those of the caller's iterator.

    An error of the iterator is its end. raise_error() raises it, once what came before is answered.
    """

    def __init__(
        self, iterator: Iterator[Request[Any]], ahead: int = MAX_UNANSWERED
    ) -> None:
        if ahead < 1:
            raise ValueError(f"ahead is {ahead}: it must be at least 1")
        self.ahead = ahead
        """How many of them may be unanswered at a time."""
        self._iterator = iterator
        self._waiting: Deque[Request[Any]] = deque()
        self._at_end = False

    def peek(self) -> Optional[Request[Any]]:
        """The next request; None at the end."""
        if not self._waiting and not self._at_end:
            try:
                self._waiting.append(next(self._iterator))
            except StopIteration:
                self._at_end = True
            except Exception as error:
                self._at_end = True
                self._error = error
        return self._waiting[0] if self._waiting else None

    def pop(self) -> None:
        """Takes the request that peek() returned."""
        self._waiting.popleft()

    def put_back(self, requests: Iterable[Request[Any]]) -> None:
        """Requests that are asked again, before all others."""
        self._waiting.extendleft(reversed(list(requests)))
