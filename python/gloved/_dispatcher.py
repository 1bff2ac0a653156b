"""The connections of an AsyncClient, and its calls until their answers.

A _Link is one connection, a Dispatcher all of a client and the calls that are not sent yet. Each
call is in one place: it waits in the dispatcher, is delayed there until it is asked again, or is
in the link that has sent it. What happens, who is told, and what becomes of the calls:

event                       who hears of it             effect
a call begins               Dispatcher.dispatch         the emptiest link sends it, or a new one;
                                                        it waits if all are full
an answer comes             _Link._take, then           the call ends, or is delayed if it may be
                            Dispatcher.answer           asked again; one that waits may be sent
a link can send no more     _Link._write, then          it is kept for the answers that may still
                            Dispatcher.retire           come, and gets no more calls
a link is closed            _Link._end                  it is removed; its calls are delayed, or end
                                                        with the error (RELOAD)
an answer is late           _Link._check_time,          late calls end, the others are delayed; the
                            then _end                   link is closed
a delay is over             Dispatcher._end_delay       the call is dispatched again
the client is closed        Dispatcher.close            links are closed, all calls end
"""

from __future__ import annotations

import asyncio
import copy
import heapq
import itertools
import os
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Set

from . import _socket
from ._retry import Patience, passes
from ._wire import Conversation, Outcome, Request
from .errors import ConnectionFailed, GlovedError, Internal


def closed_error() -> ValueError:
    return ValueError("the client is closed")


class Progress:
    """How many answers an ask_all has had: each restores the patience of the others."""

    answers = 0


_numbers = itertools.count()


class Call:
    """A request until its answer.

    future has the answer or the error as its result, so that nobody needs to fetch an exception.
    """

    def __init__(
        self,
        request: Request[Any],
        future: asyncio.Future[Any],
        patience: Patience,
        progress: Optional[Progress],
    ) -> None:
        self.request = request
        self.future = future
        self.number = next(_numbers)
        """Calls with smaller numbers began before."""
        self.sent_at = 0.0
        self.lost = False
        """Whether the error is not the daemon's answer to this request."""
        self._patience = patience
        self._progress = progress
        self._answers_seen = 0

    def __lt__(self, other: Call) -> bool:
        return self.number < other.number

    def next_delay(self, error: GlovedError) -> Optional[float]:
        if self._progress is not None and self._progress.answers != self._answers_seen:
            self._answers_seen = self._progress.answers
            self._patience.restore()
        return self._patience.next_delay(error)

    def finish(self, outcome: object) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class Dispatcher:
    """The connections of a client, and its calls that are not sent yet. Runs in one loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        path: Optional[_socket.Path],
        model: Optional[str],
        timeout: float,
        connections: int,
    ) -> None:
        self.loop = loop
        self._process = os.getpid()
        self._path = path
        self._model = model
        self._timeout = timeout
        self._connections = connections
        self._shared: List[_Link] = []
        # Those that take no more requests, and those of a RELOAD.
        self._others: Set[_Link] = set()
        # A heap: a call that is asked again goes before those that began later.
        self._waiting: List[Call] = []
        self._delayed: Dict[Call, asyncio.TimerHandle] = {}

    def check_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self.loop:
            raise RuntimeError(
                "this AsyncClient belongs to another event loop: make one for each loop"
            )

    def is_orphan(self) -> bool:
        """Whether the loop is over, or runs in another process."""
        return self.loop.is_closed() or self.is_of_parent()

    def is_of_parent(self) -> bool:
        """Whether this process is a child of a fork."""
        return self._process != os.getpid()

    def dispatch(self, call: Call) -> None:
        """Sends the request as soon as there is room for it."""
        if call.request.repeatable:
            heapq.heappush(self._waiting, call)
            self.send_waiting()
            return
        # It may take minutes, and the answers to those behind it would wait.
        try:
            link = self._open()
        except ConnectionFailed as error:
            self.ask_again(call, error)
            return
        self._others.add(link)
        link.ask(call)

    def send_waiting(self) -> None:
        while self._waiting:
            if self._waiting[0].future.done():
                # Cancelled.
                heapq.heappop(self._waiting)
                continue
            try:
                link = self._link_with_room()
            except ConnectionFailed as error:
                calls, self._waiting = sorted(self._waiting), []
                for call in calls:
                    self.ask_again(call, error)
                return
            if link is None:
                return
            link.ask(heapq.heappop(self._waiting))

    def _open(self) -> _Link:
        return _Link(self, self._path, self._model, self._timeout)

    def _link_with_room(self) -> Optional[_Link]:
        """The connection with the fewest requests, or a new one; None if all are full."""
        best = None
        for each in self._shared:
            if each.has_room() and (best is None or len(each.calls) < len(best.calls)):
                best = each
        if (best is not None and not best.calls) or len(self._shared) >= self._connections:
            return best
        try:
            opened = self._open()
        except ConnectionFailed:
            if best is None:
                raise
            return best
        self._shared.append(opened)
        return opened

    def retire(self, link: _Link) -> None:
        """The link takes no more requests: others go elsewhere while it ends."""
        if link in self._shared:
            self._shared.remove(link)
            self._others.add(link)
            self.send_waiting()

    def remove(self, link: _Link) -> None:
        self._others.discard(link)
        if link in self._shared:
            self._shared.remove(link)

    def answer(self, call: Call, outcome: Outcome[Any]) -> None:
        if call.request.repeatable and passes(outcome):
            assert isinstance(outcome, GlovedError)
            self.ask_again(call, outcome)
        else:
            call.finish(outcome)

    def ask_again(self, call: Call, error: GlovedError) -> None:
        """Dispatches the call again after a delay, or ends it with the error."""
        if call.future.done():
            return
        delay = call.next_delay(error)
        if delay is None:
            self.lose(call, error)
        else:
            self._delayed[call] = self.loop.call_later(delay, self._end_delay, call)

    def _end_delay(self, call: Call) -> None:
        del self._delayed[call]
        if not call.future.done():
            self.dispatch(call)

    def lose(self, call: Call, error: GlovedError) -> None:
        """Ends the call with an error that is not the daemon's answer to it."""
        call.lost = True
        # Each call raises an object of its own: they would share a traceback.
        call.finish(copy.copy(error))

    def close(self) -> None:
        links = self._shared + list(self._others)
        calls = [*self._waiting, *self._delayed]
        for link in links:
            calls += link.calls
            link.close()
        if not self.is_orphan():
            for handle in self._delayed.values():
                handle.cancel()
            for call in calls:
                call.lost = True
                call.finish(closed_error())
        self._shared.clear()
        self._others.clear()
        self._waiting.clear()
        self._delayed.clear()


class _Link:
    """A connection that the loop reads and writes.

    ConnectionFailed: no daemon listens at the socket.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        path: Optional[_socket.Path],
        model: Optional[str],
        timeout: float,
    ) -> None:
        self.calls: Deque[Call] = deque()
        """Those that were sent and have no answer yet, oldest first."""
        self._conversation = Conversation(model)
        self._dispatcher = dispatcher
        self._loop = dispatcher.loop
        self._process = os.getpid()
        self._timeout = timeout
        self._timer: Optional[asyncio.TimerHandle] = None
        # When the last answer came, or when the first of the calls was sent if that is later.
        self._answered_at = 0.0
        self._timer_is_due_at = 0.0
        self._waits_to_write = False
        self._flush_is_due = False
        self._socket = _socket.connect(path)
        try:
            self._loop.add_reader(self._socket, self._read)
        except BaseException:
            self._socket.close()
            raise

    def has_room(self) -> bool:
        return self._conversation.has_room()

    def ask(self, call: Call) -> None:
        call.sent_at = self._loop.time()
        if not self.calls:
            self._answered_at = call.sent_at
        self.calls.append(call)
        self._conversation.ask(call.request)
        if self._timer is None:
            self._set_timer(self._timeout)
        if not self._flush_is_due and not self._waits_to_write:
            # What other coroutines ask in the same turn of the loop is sent together.
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._socket.fileno() >= 0:
            self._write()

    def _write(self) -> None:
        outgoing = self._conversation.outgoing
        was_full = not self.has_room()
        if not _socket.send(self._socket, outgoing):
            self._dispatcher.retire(self)
        if bool(outgoing) != self._waits_to_write:
            self._waits_to_write = bool(outgoing)
            if outgoing:
                self._loop.add_writer(self._socket, self._write)
            else:
                self._loop.remove_writer(self._socket)
        if was_full and self.has_room():
            self._dispatcher.send_waiting()

    def _read(self) -> None:
        try:
            data = _socket.receive(self._socket)
        except BlockingIOError:
            return
        except ConnectionFailed as error:
            self._end(error)
            return
        try:
            self._take(data)
        except BaseException:
            # The loop only logs a bug: nobody may wait for ever because of it.
            self._end(Internal("the client failed to read an answer: see asyncio's log"))
            raise

    def _take(self, data: bytes) -> None:
        answers = self._conversation.receive(data)
        if answers:
            self._answered_at = self._loop.time()
        for request, outcome in answers:
            call = self.calls.popleft()
            assert call.request is request
            self._dispatcher.answer(call, outcome)
            if not request.repeatable:
                self._end(ConnectionFailed("the connection was for one request"))
                return
        if self._conversation.ended is not None:
            self._end(self._conversation.ended)
        else:
            self._dispatcher.send_waiting()

    def _set_timer(self, seconds: float) -> None:
        self._timer_is_due_at = self._loop.time() + seconds
        self._timer = self._loop.call_later(seconds, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if not self.calls:
            return
        now = self._loop.time()
        # While other code held up the loop, nothing could be read.
        self._answered_at += now - self._timer_is_due_at
        remaining = self._answered_at + self._timeout - now
        if self._conversation.takes_its_time():
            self._set_timer(self._timeout)
        elif remaining > 0:
            self._set_timer(remaining)
        else:
            late = self._conversation.late(self._timeout)
            waiting, self.calls = self.calls, deque()
            while waiting and waiting[0].sent_at + self._timeout <= now:
                self._dispatcher.lose(waiting.popleft(), late)
            # The others were sent a moment ago: another connection may answer them in time.
            self.calls = waiting
            self._end(ConnectionFailed("gloved does not answer on this connection"))

    def _end(self, error: GlovedError) -> None:
        """Closes, and asks the calls again elsewhere; those that must not be end with the error."""
        self.close()
        self._dispatcher.remove(self)
        may_ask_again = self._conversation.nothing_read
        calls, self.calls = self.calls, deque()
        for call in calls:
            if may_ask_again or call.request.repeatable:
                self._dispatcher.ask_again(call, error)
            else:
                self._dispatcher.lose(call, error)
        self._dispatcher.send_waiting()

    def close(self) -> None:
        # After a fork the child shares the selector with its parent, which goes on using it.
        if self._process == os.getpid() and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            if self._timer is not None:
                self._timer.cancel()
        self._timer = None
        self._socket.close()
