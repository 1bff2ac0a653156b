"""The protocol without sockets: quoting words, and reading replies.

Both clients use it. PROTOCOL.md in gloved's sources describes the protocol; connections ask for
replies in JSON, one object a line.
"""

from __future__ import annotations

import json
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

from .errors import GlovedError, TooLong, error_of_reply

T = TypeVar("T")
Reply = Dict[str, Any]

MAX_LINE_BYTES = 65_536
"""The longest request, without its LF."""

MAX_UNANSWERED = 256
"""The daemon reads no further from a connection with so many unanswered requests."""

# JSON shows a byte of a word that is not UTF-8 as the code point U+10FF00 + byte.
_FIRST_BYTE_CODE_POINT = 0x10FF80
_BYTE_CODE_POINTS = {_FIRST_BYTE_CODE_POINT + i: 0xDC80 + i for i in range(0x80)}
_ESCAPED_BYTE = rb"\udbff\udf"

_ESCAPES = {byte: f"\\x{byte:02x}" for byte in (*range(0x20), 0x7F)}
_ESCAPES.update({ord('"'): '\\"', ord("\\"): "\\\\"})


@dataclass(frozen=True)
class Request(Generic[T]):
    """A line for the daemon, without its LF, and how to read the reply.

    A repeatable request may be sent again when a connection ends before its answer.
    """

    line: bytes
    read: Callable[[Reply], T]
    repeatable: bool = True

    def __post_init__(self) -> None:
        if len(self.line) > MAX_LINE_BYTES:
            raise TooLong(f"a request of {len(self.line)} bytes; at most {MAX_LINE_BYTES} are read")


def quote(word: str) -> str:
    """The word as a token that is always a word, whatever it looks like."""
    if not isinstance(word, str):
        raise TypeError(f"a word is a str, not {type(word).__name__}")
    if not word:
        raise ValueError("a word must not be empty")
    return '"' + word.translate(_ESCAPES) + '"'


def line(verb: str, options: Iterable[Tuple[str, object]], tokens: Iterable[str]) -> bytes:
    """A request: the verb, the options that are not None, and tokens of the protocol.

    Bytes of words that are not UTF-8 stand in a str as Python's surrogateescape puts them.
    """
    parts = [verb]
    parts += [f"{name}={value}" for name, value in options if value is not None]
    parts += tokens
    return " ".join(parts).encode("utf-8", "surrogateescape")


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
    reply = json.loads(data)
    if not isinstance(reply, dict) or "ok" not in reply:
        raise ValueError(f"not a reply of gloved: {data[:80]!r}")
    restored: Reply = _restore_bytes(reply) if _ESCAPED_BYTE in data else reply
    return restored


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
        """Why the daemon closes the connection, once it has said so. It read none of the
        unanswered requests then."""
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
        self.outgoing += request.line
        self.outgoing += b"\n"
        self.unanswered.append(request)

    def receive(self, data: bytes) -> List[Tuple[Request[Any], Outcome[Any]]]:
        """The requests that the bytes answer, each with its result or error.

        GlovedError: what came is not gloved's protocol, or the model is unknown.
        """
        self._incoming += data
        end = self._incoming.rfind(b"\n")
        if end < 0:
            return []
        lines = bytes(self._incoming[:end]).split(b"\n")
        del self._incoming[: end + 1]
        answers: List[Tuple[Request[Any], Outcome[Any]]] = []
        for each in lines:
            try:
                reply = parse_reply(each)
            except ValueError as error:
                raise GlovedError(f"what answers is not gloved: {error}") from None
            answer = self._take(reply)
            if answer is not None:
                answers.append(answer)
        return answers

    def _take(self, reply: Reply) -> Optional[Tuple[Request[Any], Outcome[Any]]]:
        ok = reply["ok"]
        code = reply.get("code")
        if not ok and (code == "idle" or (code == "busy" and self._setup_replies > 0)):
            self.ended = error_of_reply(reply)
            return None
        if self._setup_replies > 0:
            self._setup_replies -= 1
            if not ok:
                raise error_of_reply(reply)
            return None
        if not self.unanswered:
            self.ended = error_of_reply(reply)
            return None
        request = self.unanswered.popleft()
        if not ok:
            return request, error_of_reply(reply)
        return request, request.read(reply)
