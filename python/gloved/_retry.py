"""When a request is asked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence, Tuple

from ._wire import Outcome, Request
from .errors import Busy, ConnectionFailed, GlovedError, Idle, Unavailable

_LAST_DELAY_SECONDS = 1.0
_FIRST_DELAY_SECONDS = 0.01


def passes(error: object) -> bool:
    """Whether the same request may succeed a moment later, at this daemon or the next one."""
    return isinstance(error, (ConnectionFailed, Idle, Busy, Unavailable))


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

    def next_delay(self, error: GlovedError) -> float:
        """Seconds to wait before the next try; raises the error if there is none."""
        if not passes(error) or self.failures >= self.retries:
            raise error
        self.failures += 1
        return min(_LAST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * float(2 ** (self.failures - 1)))


def first_passing(answers: Sequence[Tuple[Request[Any], Outcome[Any]]]) -> int:
    """The index of the first request that should be asked again; their number if there is none."""
    for index, (request, outcome) in enumerate(answers):
        if request.repeatable and passes(outcome):
            return index
    return len(answers)
