"""A connection for one thread at a time."""

from __future__ import annotations

import os
import select
import time
from typing import Any, Iterator, List, Optional, Tuple

from . import _socket
from ._retry import Asked
from ._wire import Conversation, Outcome, Request
from .errors import copy_to_raise

_MAX_POLL_MS = 2**31 - 1


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
        # Seconds spent waiting since the last answer.
        self._waited = 0.0
        self._socket = _socket.connect(path)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def close(self) -> None:
        self._socket.close()

    def can_be_kept(self) -> bool:
        """Whether it may serve another call. If not, close it."""
        return self._socket.fileno() >= 0 and self.conversation.can_be_kept()

    def is_stale(self) -> bool:
        """Whether an idle connection is of no use: the daemon said something, or closed it."""
        return not self.can_be_kept() or bool(self._poll.poll(0))

    def exchange(self, asked: Asked) -> Iterator[List[Tuple[Request[Any], Outcome[Any]]]]:
        """Asks the requests, reading while it writes, and yields their answers as they come.

        At most asked.ahead requests are unanswered at a time; no more are taken from `asked`. A
        request that is not repeatable is sent alone, so that it never waits to be asked again.
        Timeout: the next answer was not there, whole, after the connection's timeout (a request
        that is not repeatable takes as long as it takes). ConnectionFailed, or why the daemon ended
        the connection (`conversation.ended`): the unanswered requests have no answer.
        """
        conversation = self.conversation
        self._waited = 0.0
        while True:
            self._take_requests(asked)
            if not conversation.unanswered:
                return
            self._send()
            data = self._read()
            if data:
                answers = conversation.receive(data)
                if answers:
                    yield answers
                    self._waited = 0.0
            if conversation.ended is not None and (conversation.unanswered or asked.peek()):
                raise copy_to_raise(conversation.ended)

    def _take_requests(self, asked: Asked) -> None:
        conversation = self.conversation
        while conversation.has_room() and len(conversation.unanswered) < asked.ahead:
            request = asked.peek()
            if request is None:
                return
            if conversation.unanswered and not (
                request.repeatable and conversation.unanswered[-1].repeatable
            ):
                return
            asked.pop()
            conversation.ask(request)

    def _send(self) -> None:
        if self.conversation.outgoing:
            _socket.send(self._socket, self.conversation.outgoing)

    def _read(self) -> bytes:
        """What came; empty if there is room to write instead."""
        try:
            return _socket.receive(self._socket)
        except BlockingIOError:
            self._wait()
            return b""

    def _wait(self) -> None:
        conversation = self.conversation
        timeout_ms = None
        if not conversation.takes_its_time():
            remaining = max(0.0, self._timeout - self._waited)
            timeout_ms = min(remaining * 1000, _MAX_POLL_MS)
        events = select.POLLIN | (select.POLLOUT if conversation.outgoing else 0)
        self._poll.modify(self._socket, events)
        begun = time.monotonic()
        try:
            is_ready = self._poll.poll(timeout_ms)
        finally:
            self._poll.modify(self._socket, select.POLLIN)
        self._waited += time.monotonic() - begun
        if not is_ready:
            raise conversation.late(self._timeout)
