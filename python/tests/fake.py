"""Servers that are not gloved, or that break where gloved rarely does."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from typing import Callable, Iterator, List

OK = b'{"ok":true,"results":[]}\n'


class Peer:
    """A server's side of one connection."""

    def __init__(self, connection: socket.socket, logs: List[List[bytes]]) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self._logs = logs

    def line(self) -> bytes:
        """The client's next line; empty when the client has closed."""
        try:
            data = self._file.readline().rstrip(b"\n")
        except OSError:
            return b""
        for log in self._logs:
            if data and data != b"FORMAT json":
                log.append(data)
        return data

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._connection.sendall(data)

    def answer(self, count: int) -> None:
        """OK to the next lines."""
        for _ in range(count):
            if self.line():
                self.send(OK)

    def serve(self) -> None:
        """OK to all lines until the client closes."""
        while self.line():
            self.send(OK)

    def ignore(self) -> None:
        """No answer to any line until the client closes."""
        while self.line():
            pass

    def close(self) -> None:
        self._file.close()
        with contextlib.suppress(OSError):
            # makefile() keeps the descriptor: a client must see the end all the same.
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


Script = Callable[[Peer], None]


class FakeServer:
    """Listens at .socket. The first connection runs the first script, and so on; later ones the
    last. A connection is closed when its script returns.

    lines        what came, without setup, in one list for each connection
    all_lines    the same of all connections, in the order in which it came
    """

    def __init__(self, directory: Path, scripts: List[Script]) -> None:
        self.socket = str(directory / "fake.sock")
        self.lines: List[List[bytes]] = []
        self.all_lines: List[bytes] = []
        self._scripts = scripts
        self._peers: List[Peer] = []
        self._threads: List[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.socket)
        self._listener.listen(64)
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(len(self.lines), len(self._scripts) - 1)]
            self.lines.append([])
            peer = Peer(connection, [self.lines[-1], self.all_lines])
            self._peers.append(peer)
            self._threads.append(threading.Thread(target=self._run, args=(script, peer)))
            self._threads[-1].start()

    @staticmethod
    def _run(script: Script, peer: Peer) -> None:
        try:
            script(peer)
        finally:
            peer.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer._connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def serving(*scripts: Script) -> Iterator[FakeServer]:
    # Not pytest's directories: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="gloved-test-") as directory:
        server = FakeServer(Path(directory), list(scripts))
        try:
            yield server
        finally:
            server.close()
