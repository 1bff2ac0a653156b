"""Connections that threads borrow, and that a forked child does not share."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Callable, List

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
        self._forget()
        _pools.add(self)

    def _forget(self) -> None:
        self._idle: List[Connection] = []
        self._borrowed = 0
        self._closed = False
        self._returned = threading.Condition()

    def take(self, timeout: float) -> Connection:
        """An idle connection, or a new one. Give it back with put() or drop().

        Timeout: all were borrowed for that long. ConnectionFailed: no daemon answers.
        """
        deadline = time.monotonic() + timeout
        with self._returned:
            if self._closed:
                raise ValueError("the client is closed")
            while self._borrowed >= self._size:
                if not self._returned.wait(deadline - time.monotonic()):
                    raise Timeout(f"all {self._size} connections were in use for {timeout:g} s")
            self._borrowed += 1
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_stale():
                    return connection
                connection.close()
        try:
            return self._open()
        except BaseException:
            self._give_way()
            raise

    def put(self, connection: Connection) -> None:
        """Takes back a connection that has no unanswered requests."""
        with self._returned:
            if not self._closed and connection.process == os.getpid():
                self._idle.append(connection)
            else:
                connection.close()
        self._give_way()

    def drop(self, connection: Connection) -> None:
        """Takes back a connection that is of no use any more."""
        connection.close()
        self._give_way()

    def _give_way(self) -> None:
        with self._returned:
            self._borrowed = max(0, self._borrowed - 1)
            self._returned.notify()

    def close(self) -> None:
        """Closes idle connections now, and borrowed ones when they come back."""
        with self._returned:
            self._closed = True
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def after_fork(self) -> None:
        """Forgets the parent's connections, in the child. Closing the child's copies of the
        sockets says nothing to the daemon."""
        closed = self._closed
        for connection in self._idle:
            connection.close()
        # Another thread of the parent may have held the lock: the child makes a new one.
        self._forget()
        self._closed = closed


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_parents_connections() -> None:
    for pool in list(_pools):
        pool.after_fork()


os.register_at_fork(after_in_child=_forget_parents_connections)
