"""A connection for one thread at a time."""

from __future__ import annotations

import os
import select
import socket
from typing import Any, Iterator, List, Optional, Tuple

from . import _socket
from ._wire import MAX_UNANSWERED, Conversation, Outcome, Request
from .errors import ConnectionFailed, Timeout

_MAX_OUTGOING_BYTES = 64 * 1024
_READ_BYTES = 256 * 1024


def _open_socket(path: Optional[_socket.Path], timeout: float) -> socket.socket:
    errors = []
    for each in _socket.candidates(path):
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(timeout)
            opened.connect(each)
            opened.setblocking(False)
            return opened
        except OSError as error:
            opened.close()
            errors.append(f"{each}: {error.strerror or error}")
    raise ConnectionFailed(_socket.not_reachable(errors))


class Connection:
    """A socket and its conversation. Neither threads nor processes may share it.

    ConnectionFailed: no daemon listens at the socket.
    """

    def __init__(
        self, path: Optional[_socket.Path], model: Optional[str], timeout: float
    ) -> None:
        self.conversation = Conversation(model)
        self.process = os.getpid()
        """The process that opened it: a child of a fork must not use it."""
        self._timeout = timeout
        self._socket = _open_socket(path, timeout)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def close(self) -> None:
        self._socket.close()

    def is_stale(self) -> bool:
        """Whether an idle connection is of no use: the daemon said something, or closed it."""
        return bool(self.conversation.unanswered or self._poll.poll(0))

    def exchange(
        self, requests: Iterator[Request[Any]]
    ) -> Iterator[List[Tuple[Request[Any], Outcome[Any]]]]:
        """Asks the requests, reading while it writes, and yields their answers as they come.

        At most 256 requests are unanswered at any time; no more are taken from the iterator.
        Timeout: nothing came for the connection's timeout (a request that is not repeatable takes
        as long as it takes). ConnectionFailed, or why the daemon ended the connection
        (`conversation.ended`): the unanswered requests have no answer.
        """
        conversation = self.conversation
        more = True
        while True:
            while (
                more
                and len(conversation.unanswered) < MAX_UNANSWERED
                and len(conversation.outgoing) < _MAX_OUTGOING_BYTES
            ):
                request = next(requests, None)
                if request is None:
                    more = False
                else:
                    conversation.ask(request)
            if not conversation.unanswered and not more:
                return
            self._send()
            data = self._read()
            if data:
                answers = conversation.receive(data)
                if answers:
                    yield answers
            if conversation.ended is not None:
                raise conversation.ended

    def _send(self) -> None:
        outgoing = self.conversation.outgoing
        if not outgoing:
            return
        try:
            del outgoing[: self._socket.send(outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            # The daemon has closed its side. What it answered before can still be read.
            outgoing.clear()

    def _read(self) -> bytes:
        """What came; empty if there is room to write instead."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            self._wait()
            return b""
        except OSError as error:
            raise ConnectionFailed(f"the connection to gloved failed: {error}") from None
        if not data:
            raise ConnectionFailed("gloved closed the connection before it answered")
        return data

    def _wait(self) -> None:
        conversation = self.conversation
        timeout_ms = None
        if not conversation.unanswered or conversation.unanswered[0].repeatable:
            timeout_ms = self._timeout * 1000
        events = select.POLLIN | (select.POLLOUT if conversation.outgoing else 0)
        self._poll.modify(self._socket, events)
        try:
            if not self._poll.poll(timeout_ms):
                raise Timeout(f"gloved has not answered for {self._timeout:g} s")
        finally:
            self._poll.modify(self._socket, select.POLLIN)
