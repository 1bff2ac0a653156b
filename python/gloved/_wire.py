"""The protocol without sockets: quoting words, and reading replies.

Both clients use it. PROTOCOL.md in gloved's sources describes the protocol; connections ask for
replies in JSON, one object a line.
"""

from __future__ import annotations

import json
import math
import operator
from collections import deque
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Generic,
    Iterable,
    List,
    Optional,
    Tuple,
    TypeVar,
    Union,
)

from . import _reply
from ._reply import Reply
from .errors import GlovedError, Internal, Timeout, TooLong

T = TypeVar("T")

MAX_LINE_BYTES = 65_536
"""The longest request, without its LF."""

MAX_UNANSWERED = 256
"""The daemon reads no further from a connection with so many unanswered requests."""

MAX_REPLY_BYTES = 1 << 30
"""No reply of the daemon is longer: a MATRIX of 4,096 words has some 400 MB."""

_MAX_OUTGOING_BYTES = 64 * 1024

# JSON shows a byte of a word that is not UTF-8 as the code point U+10FF00 + byte.
_FIRST_BYTE_CODE_POINT = 0x10FF80
_BYTE_CODE_POINTS = {_FIRST_BYTE_CODE_POINT + i: 0xDC80 + i for i in range(0x80)}
CODE_POINTS_OF_BYTES = {shown: code for code, shown in _BYTE_CODE_POINTS.items()}
"""A word in Python as JSON shows it."""
_ESCAPED_BYTE = rb"\udbff\udf"

_ESCAPES = {byte: f"\\x{byte:02x}" for byte in (*range(0x20), 0x7F)}
_ESCAPES.update({ord('"'): '\\"', ord("\\"): "\\\\"})


@dataclass(frozen=True)
class Request(Generic[T]):
    """A line for the daemon, without its LF, and how to read the reply.

    A repeatable request may be sent again when a connection ends before its answer.
    `scan`, if there is one, sees the reply's line first, and returns the same as `read`, or None to
    leave it to that. To parse the numbers of a long answer takes most of a client's time.

    TooLong: the daemon would not read the line. ValueError: it is not one line, so that its
    replies would be taken for those of other requests.
    """

    line: bytes
    read: Callable[[Reply], T]
    repeatable: bool = True
    scan: Optional[Callable[[bytes], Optional[T]]] = None

    def __post_init__(self) -> None:
        if len(self.line) > MAX_LINE_BYTES:
            raise TooLong(f"a request of {len(self.line)} bytes; at most {MAX_LINE_BYTES} are read")
        if b"\n" in self.line or b"\r" in self.line or b"\0" in self.line:
            raise ValueError("a request must not have LF, CR or NUL; words with them are quoted")


def quote(word: str) -> str:
    """The word, which is not empty, as a token that is a word whatever it looks like."""
    return '"' + word.translate(_ESCAPES) + '"'


def token(name: str, value: str) -> str:
    """The token for a parameter that is a word or a name.

    TypeError, ValueError (TooLong): no request can have it; they name the parameter.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {type(value).__name__}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    quoted = quote(value)
    try:
        size = len(encode(quoted))
    except UnicodeEncodeError:
        raise ValueError(f"{name} has half of a surrogate pair, which stands for no byte") from None
    if size > MAX_LINE_BYTES:
        raise TooLong(f"{name} has {size} bytes; a request has at most {MAX_LINE_BYTES}")
    return quoted


def items(name: str, value: Any, wanted: str) -> List[Any]:
    """The items of a parameter that is a list. TypeError: it is one str, or no list at all."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{name} is {wanted}, not one {type(value).__name__}")
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{name} is {wanted}, not {type(value).__name__}") from None


def number(name: str, value: Any) -> float:
    """A parameter that is a number, which must be finite."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        result = float(value)
    except (TypeError, OverflowError):
        raise TypeError(f"{name} is a number, not {type(value).__name__}") from None
    if not math.isfinite(result):
        raise ValueError(f"{name} is {result}: it must be finite")
    return result


def _count(name: str, value: Any) -> str:
    try:
        if isinstance(value, bool):
            raise TypeError
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an int, not {type(value).__name__}") from None
    if count.bit_length() > 64:
        raise ValueError(f"{name} has {count.bit_length()} bits; it is at most 2 ** 32 - 1")
    return str(count)


def _number(name: str, value: Any) -> str:
    return repr(number(name, value))


def _flag(name: str, value: Any) -> Optional[str]:
    try:
        # A bool of NumPy is no int.
        is_set = {0: False, 1: True}[value]
    except (KeyError, TypeError):
        raise TypeError(f"{name} is True or False, not another {type(value).__name__}") from None
    return "1" if is_set else None


def _names(name: str, value: Any) -> Optional[str]:
    """Names with commas between them: a str as it is, or several of them."""
    if isinstance(value, str):
        return token(name, value)
    names = items(name, value, "a name or a list of names")
    for each in names:
        token(name, each)
        if "," in each:
            raise ValueError(f"{name}: a name has no comma, unlike {each!r:.80}")
    return token(name, ",".join(names)) if names else None


_OPTIONS: Dict[str, Callable[[str, Any], Optional[str]]] = {
    "k": _count,
    "min": _number,
    "top": _count,
    "prefix": token,
    "within": _names,
    "without": _names,
    "only": _count,
    "norm": token,
    "exclude": token,
    "method": token,
    "metric": token,
    "encoding": token,
    "unknown": token,
    "case": token,
    "engine": token,
    "model": token,
    "fields": _names,
    "certify": _flag,
    "base64": token,
}
"""How an option of a request is written: as one token, whatever its value."""


def line(verb: str, options: Iterable[Tuple[str, object]], tokens: Iterable[str]) -> bytes:
    """A request: the verb, the options that are not None, and tokens of the protocol.

    Bytes of words that are not UTF-8 stand in a str as Python's surrogateescape puts them.
    TypeError, ValueError: an option cannot have its value.
    """
    parts = [verb]
    for name, value in options:
        written = None if value is None else _OPTIONS[name](name, value)
        if written is not None:
            parts.append(f"{name}={written}")
    parts += tokens
    return encode(" ".join(parts))


def encode(text: str) -> bytes:
    """The bytes of words, those outside UTF-8 too."""
    return text.encode("utf-8", "surrogateescape")


def _restore_bytes(value: Any) -> Any:
    """The value with its words as Python has them, bytes outside UTF-8 as surrogates."""
    if isinstance(value, str):
        data = value.translate(_BYTE_CODE_POINTS).encode("utf-8", "surrogateescape")
        return data.decode("utf-8", "surrogateescape")
    if isinstance(value, list):
        return [_restore_bytes(each) for each in value]
    if isinstance(value, dict):
        return {name: _restore_bytes(each) for name, each in value.items()}
    return value


def parse_reply(data: bytes) -> Reply:
    """A reply from its line. A refused connection gets a line of text: ERR busy and a message.

    ValueError: it is neither.
    """
    if data.startswith(b"ERR "):
        _, code, message = (data.decode("utf-8", "replace") + "  ").split(" ", 2)
        return {"ok": False, "code": code, "message": message.strip()}
    try:
        reply = json.loads(data)
    except RecursionError:
        reply = None
    if not isinstance(reply, dict) or "ok" not in reply:
        raise ValueError(f"not a reply: {data[:80]!r}")
    restored: Reply = _restore_bytes(reply) if _ESCAPED_BYTE in data else reply
    return restored


def _may_begin_reply(data: bytes) -> bool:
    return data[:1] == b"{" or b"ERR ".startswith(data[:4])


Outcome = Union[T, GlovedError]


class Conversation:
    """One connection's side of the protocol, without I/O.

    ask() appends to `outgoing`, whose bytes are to be sent and deleted. receive() takes what came
    and returns the requests that it answers, in the order in which they were asked.
    """

    def __init__(self, model: Optional[str]) -> None:
        self.outgoing = bytearray()
        self.unanswered: Deque[Request[Any]] = deque()
        """Requests without an answer yet, oldest first."""
        self.ended: Optional[GlovedError] = None
        """Why no more answers come, once that is known: the daemon closes the connection, does not
        have the model, or is not gloved."""
        self.nothing_read = False
        """Whether the daemon said, as it ended the connection, that it read none of the unanswered
        requests."""
        self._incoming = bytearray()
        self._setup_replies = 0
        self._set_up(line("FORMAT", (), ("json",)))
        if model is not None:
            self._set_up(line("USE", (), (quote(model),)))

    def _set_up(self, data: bytes) -> None:
        self.outgoing += data + b"\n"
        self._setup_replies += 1

    def ask(self, request: Request[Any]) -> None:
        """Appends a request."""
        # First, so that whoever is interrupted between the two does not keep the connection.
        self.unanswered.append(request)
        self.outgoing += request.line
        self.outgoing += b"\n"

    def has_room(self) -> bool:
        """Whether to ask more before answers come or bytes are sent."""
        return len(self.unanswered) < MAX_UNANSWERED and len(self.outgoing) < _MAX_OUTGOING_BYTES

    def can_be_kept(self) -> bool:
        """Whether a connection can wait for other requests: nothing is half done."""
        return self.ended is None and not self.unanswered and not self._incoming

    def takes_its_time(self) -> bool:
        """Whether the daemon now answers a request that may take as long as it takes."""
        return (
            self._setup_replies == 0
            and bool(self.unanswered)
            and not self.unanswered[0].repeatable
        )

    def late(self, timeout: float) -> Timeout:
        """The error for an answer that was not there, whole, in so many seconds."""
        if self._incoming:
            return Timeout(
                f"gloved's answer was not whole within {timeout:g} s: {len(self._incoming):,} bytes"
                " have come. A larger timeout= waits for the rest"
            )
        return Timeout(f"gloved has not answered within {timeout:g} s")

    def receive(self, data: bytes) -> List[Tuple[Request[Any], Outcome[Any]]]:
        """The requests that the bytes answer, each with its result or error.

        `ended` is set if they are the last. What comes after that is ignored.
        """
        answers: List[Tuple[Request[Any], Outcome[Any]]] = []
        # Only the new bytes are searched: an answer may have hundreds of MiB.
        whole_lines, newline, rest = data.rpartition(b"\n")
        lines: List[bytes] = []
        if newline:
            self._incoming += whole_lines
            lines = bytes(self._incoming).split(b"\n")
            self._incoming.clear()
        self._incoming += rest
        for each in lines:
            if self.ended is not None:
                break
            answer = self._take(each)
            if answer is not None:
                answers.append(answer)
        # Whatever else it is may never send an LF.
        if self.ended is None and not _may_begin_reply(self._incoming):
            self._end_as_stranger(repr(bytes(self._incoming[:80])))
        if self.ended is None and len(self._incoming) > MAX_REPLY_BYTES:
            self._end_as_stranger(f"a reply of more than {MAX_REPLY_BYTES} bytes")
        return answers

    def _end_as_stranger(self, reason: str) -> None:
        self.ended = GlovedError(f"what answers is not gloved: {reason}")

    def _take(self, data: bytes) -> Optional[Tuple[Request[Any], Outcome[Any]]]:
        if self._setup_replies == 0 and self.unanswered:
            scan = self.unanswered[0].scan
            scanned = scan and scan(data)
            if scanned is not None:
                return self.unanswered.popleft(), scanned
        try:
            reply = parse_reply(data)
            error = None if _reply.flag(reply["ok"]) else _reply.error(reply)
        except (MemoryError, TypeError, ValueError) as reason:
            self._end_as_stranger(str(reason) or "a reply that does not fit into memory")
            return None
        if error is not None and (
            error.code == "idle" or (error.code == "busy" and self._setup_replies > 0)
        ):
            self.ended = error
            self.nothing_read = True
            return None
        if self._setup_replies > 0:
            self._setup_replies -= 1
            self.ended = error
            return None
        if not self.unanswered:
            self.ended = error
            if error is None:
                self._end_as_stranger("it replies though nothing was asked")
            return None
        request = self.unanswered.popleft()
        if error is not None:
            return request, error
        reply["audit"] = data if "request" in reply else None
        try:
            return request, request.read(reply)
        except _UNREADABLE as reason:
            # Only this request fails: the next reply is on a line of its own.
            return request, _unreadable(reason, data)


# What reading raises. A signal's handler may raise other errors meanwhile, such as a TimeoutError.
_UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError
)


def _unreadable(reason: BaseException, data: bytes) -> Internal:
    error = Internal(f"a reply that cannot be read: {reason!r}: {data[:80]!r}")
    error.__cause__ = reason
    return error
