"""Connections that threads borrow, and that a forked child does not share.

A signal's handler may raise an error anywhere here. So nothing has to be undone: a place is taken
as long as somebody has it.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Callable, List, Optional

from . import _fork
from ._connection import Connection
from .errors import Timeout


_LOOK_SECONDS = 0.1
"""How long a thread waits before it looks again: nobody tells of a place that was lost."""


class Place:
    """One of the calls that may run at a time. It is free again when nobody has it any more."""

    def __init__(self) -> None:
        self.connection: Optional[Connection] = None


class Pool:
    """At most `size` connections, opened when they are needed. Any thread may use it.

    A child process of a fork begins with an empty pool: its parent goes on using the connections.
    """

    def __init__(self, open_connection: Callable[[], Connection], size: int) -> None:
        if size < 1:
            raise ValueError(f"a pool of {size} connections; it needs at least 1")
        self._open = open_connection
        self._size = size
        self._closed = False
        self._idle: List[Connection] = []
        self._forget_borrowed()
        _fork.watch(self)

    def _forget_borrowed(self) -> None:
        self._taken: weakref.WeakSet[Place] = weakref.WeakSet()
        # Its `with` is one step, unlike that of a condition: no signal comes between taking it and
        # the block. A call that the garbage collector ends in a block gives its place back there.
        self._lock = threading.RLock()
        self._returned = threading.Condition(self._lock)

    def take(self, timeout: float) -> Place:
        """A place with an idle connection, or a new one. Give it back with put().

        Timeout: all were borrowed for that long. ConnectionFailed: no daemon answers. ValueError:
        the pool is closed.
        """
        deadline = time.monotonic() + timeout
        place = Place()
        with self._lock:
            self._raise_if_closed()
            while len(self._taken) >= self._size:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise Timeout(f"all {self._size} connections were in use for {timeout:g} s")
                self._returned.wait(min(remaining, _LOOK_SECONDS))
                self._raise_if_closed()
            self._taken.add(place)
            while self._idle:
                place.connection = self._idle.pop()
                if not place.connection.is_stale():
                    return place
                place.connection.close()
        try:
            place.connection = self._open()
        except BaseException:
            # Whoever keeps the error keeps the place.
            self._free(place)
            raise
        return place

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ValueError("the client is closed")

    def put(self, place: Place) -> None:
        """Takes back a place, and closes its connection if nobody can use it any more."""
        connection, place.connection = place.connection, None
        assert connection is not None
        if connection.process != os.getpid():
            # Borrowed before a fork, in the parent.
            connection.close()
            return
        with self._lock:
            if not self._closed and connection.can_be_kept():
                self._idle.append(connection)
            else:
                connection.close()
        self._free(place)

    def _free(self, place: Place) -> None:
        with self._lock:
            self._taken.discard(place)
            self._returned.notify()

    def close(self) -> None:
        """Closes idle connections now, and borrowed ones when they come back."""
        with self._lock:
            self._closed = True
            _close_all(self._idle)
            self._returned.notify_all()

    def after_fork(self) -> None:
        """Forgets the parent's connections, in the child.

        Closing the child's copies of the sockets says nothing to the daemon. Calls that go on in
        the child find theirs closed, and ask again.
        """
        _close_all(self._idle)
        _close_all([place.connection for place in self._taken if place.connection is not None])
        # Another thread of the parent may have held the lock: the child makes a new one.
        self._forget_borrowed()


def _close_all(connections: List[Connection]) -> None:
    while connections:
        connections.pop().close()
