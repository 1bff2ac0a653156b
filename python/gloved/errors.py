"""The errors of gloved: one class for each code of the protocol, and one for a lost connection.

All derive from GlovedError. Each also derives from the built-in exception that says the same in
Python, so that code which catches KeyError or ValueError works unchanged.
"""

from __future__ import annotations

import copy
from typing import Dict, List, Optional, Type, TypeVar


class GlovedError(Exception):
    """What the daemon refused, or could not do.

    code is the protocol's word for it, such as "bad_request", and message its sentence. Branch on
    the class or the code: the message may change.
    """

    code = "internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        # KeyError would show the message in quotes.
        return self.message


class BadRequest(GlovedError, ValueError):
    """The request does not follow the protocol, or its query vector is not finite."""

    code = "bad_request"


class UnknownWord(GlovedError, KeyError):
    """The model does not have a word."""

    code = "unknown_word"

    def __init__(
        self, message: str, word: str = "", suggestions: Optional[List[str]] = None
    ) -> None:
        super().__init__(message)
        self.word = word
        """The word that is missing."""
        self.suggestions = suggestions or []
        """Up to five words of the model that are spelled alike, the likeliest first."""


class UnknownModel(GlovedError, LookupError):
    """The daemon does not serve a model of that name."""

    code = "unknown_model"


class UnknownList(GlovedError, LookupError):
    """The model has no list of words of that name."""

    code = "unknown_list"


class ZeroVector(GlovedError, ValueError):
    """A query vector, or the vector of a word, is zero: it has no direction to compare with."""

    code = "zero_vector"


class TooLong(GlovedError, ValueError):
    """A request is longer than 65,536 bytes."""

    code = "too_long"


class Forbidden(GlovedError, PermissionError):
    """Only root and the daemon's own user may do this."""

    code = "forbidden"


class Busy(GlovedError):
    """Too many requests or connections are waiting."""

    code = "busy"


class Timeout(GlovedError, TimeoutError):
    """The daemon, or its engine, did not answer in time."""

    code = "timeout"


class Idle(GlovedError, ConnectionError):
    """The daemon closed a connection that had sent nothing for too long."""

    code = "idle"


class Unavailable(GlovedError):
    """An engine has failed, or a model could not be loaded again."""

    code = "unavailable"


class ModelReplaced(Unavailable):
    """A model was replaced again and again while a call of several requests asked it.

    Its answers were of different models, so there is no result. Ask again.
    """


class Internal(GlovedError, RuntimeError):
    """A bug in the daemon."""

    code = "internal"


class ConnectionFailed(GlovedError, ConnectionError):
    """No daemon answers at the socket, or the connection ended before the answer."""

    code = "connection"


class AccessDenied(ConnectionFailed, PermissionError):
    """This user may not connect to the daemon's socket. It is not tried again."""


class ProgramFailed(GlovedError):
    """A program of gloved that gloved.convert() or gloved.serve() ran; its message tells why."""

    code = "program"


E = TypeVar("E", bound=BaseException)


def copy_to_raise(error: E) -> E:
    """A copy of an error that somebody keeps.

    An error that was raised holds the frames that it passed, with all that is borrowed there. If
    one of these frames holds the error in turn, that ends only when garbage is collected.
    """
    raised = copy.copy(error)
    raised.__cause__ = error.__cause__
    return raised


_BY_CODE: Dict[str, Type[GlovedError]] = {
    each.code: each
    for each in (
        BadRequest,
        UnknownModel,
        UnknownList,
        ZeroVector,
        TooLong,
        Forbidden,
        Busy,
        Timeout,
        Idle,
        Unavailable,
        Internal,
    )
}


def class_of_code(code: str) -> Type[GlovedError]:
    """The class of errors with a code, which a later daemon may have invented."""
    return _BY_CODE.get(code, GlovedError)
