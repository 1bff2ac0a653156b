"""Connections that threads borrow, and that a forked child does not share."""

from __future__ import annotations

import os
import threading
import time
from typing import Callable, List, Set

from . import _fork
from ._connection import Connection
from .errors import Timeout


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
        self._borrowed: Set[Connection] = set()
        self._slots_in_use = 0
        self._returned = threading.Condition()

    def take(self, timeout: float) -> Connection:
        """An idle connection, or a new one. Give it back with put().

        Timeout: all were borrowed for that long. ConnectionFailed: no daemon answers. ValueError:
        the pool is closed.
        """
        deadline = time.monotonic() + timeout
        with self._returned:
            self._raise_if_closed()
            while self._slots_in_use >= self._size:
                remaining = min(deadline - time.monotonic(), threading.TIMEOUT_MAX)
                if not self._returned.wait(remaining):
                    raise Timeout(f"all {self._size} connections were in use for {timeout:g} s")
                self._raise_if_closed()
            self._slots_in_use += 1
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_stale():
                    self._borrowed.add(connection)
                    return connection
                connection.close()
        try:
            connection = self._open()
        except BaseException:
            self._free_slot()
            raise
        self._borrowed.add(connection)
        return connection

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ValueError("the client is closed")

    def put(self, connection: Connection) -> None:
        """Takes back a connection, and closes it if nobody can use it any more."""
        if connection.process != os.getpid():
            # Borrowed before a fork, in the parent.
            connection.close()
            return
        with self._returned:
            self._borrowed.discard(connection)
            if not self._closed and connection.can_be_kept():
                self._idle.append(connection)
            else:
                connection.close()
        self._free_slot()

    def _free_slot(self) -> None:
        with self._returned:
            self._slots_in_use -= 1
            self._returned.notify()

    def close(self) -> None:
        """Closes idle connections now, and borrowed ones when they come back."""
        with self._returned:
            self._closed = True
            _close_all(self._idle)
            self._returned.notify_all()

    def after_fork(self) -> None:
        """Forgets the parent's connections, in the child.

        Closing the child's copies of the sockets says nothing to the daemon. Calls that go on in
        the child find theirs closed, and ask again.
        """
        _close_all(self._idle)
        _close_all(list(self._borrowed))
        # Another thread of the parent may have held the lock: the child makes a new one.
        self._forget_borrowed()


def _close_all(connections: List[Connection]) -> None:
    while connections:
        connections.pop().close()
