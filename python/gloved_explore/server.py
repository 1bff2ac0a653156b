"""Serves the page of explore to browsers of this machine.

Whoever knows the token may ask what the page asks, and no more: there is a fixed table of
questions, and none of them changes anything. Browsers are told to load nothing from elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import io
import json
import re
import secrets
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple
from urllib.parse import parse_qs, urlsplit

from gloved._command import say

from .answers import Answers

ADDRESS = "127.0.0.1"
# Other names may be those of a page that resolves to this machine (DNS rebinding). The port may be
# another one: that of a tunnel.
_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?", re.IGNORECASE)
_MAX_FIELDS = 16
# Connections that have shown the token, and seconds that one may be idle.
_MAX_CONNECTIONS = 64
_IDLE_SECONDS = 60
# Connections that have not, and seconds in which each must show it. Any user of the machine can
# open them: if there are more, the oldest one makes room.
_MAX_STRANGERS = 64
_STRANGER_SECONDS = 5


def _page() -> Tuple[bytes, str]:
    """The page, and the policy that lets its own script and style run, and nothing else."""
    data = Path(__file__).with_name("page.html").read_bytes()
    hashes = {}
    for tag in (b"script", b"style"):
        (content,) = re.findall(b"<%s>(.*?)</%s>" % (tag, tag), data, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        hashes[tag] = f"'sha256-{digest}'"
    policy = (
        "default-src 'none'; "
        f"script-src {hashes[b'script']}; "
        f"style-src {hashes[b'style']}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    return data, policy


class _Received(io.RawIOBase):
    """What comes over a connection. TimeoutError: nothing came in time."""

    def __init__(self, connection: socket.socket) -> None:
        self.deadline: Optional[float] = time.monotonic() + _STRANGER_SECONDS
        """For all that comes; None once the token was shown."""
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds = float(_IDLE_SECONDS)
        if self.deadline is not None:
            # 0 would not wait: what is there already is taken.
            seconds = max(self.deadline - time.monotonic(), 0.001)
        self._connection.settimeout(seconds)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    # A reply is sent in two pieces. Nagle's algorithm would keep the second until the browser's
    # machine acknowledges the first, which it puts off by up to 40 ms.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._received = _Received(self.connection)
        self.rfile = io.BufferedReader(self._received)

    def version_string(self) -> str:
        return "gloved"

    def log_message(self, *_: Any) -> None:
        """Writes nothing: a log would have the token and what was asked."""

    def do_GET(self) -> None:  # noqa: N802  (the name is that of http.server)
        refusal = self._refusal()
        if refusal is not None:
            self._refuse(*refusal)
            return
        address = urlsplit(self.path)
        name = address.path[len(self.server.path) :]
        if name == "":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)
            return
        if name not in self.server.answers.questions:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such question")
            return
        try:
            found = parse_qs(address.query, errors="strict", max_num_fields=_MAX_FIELDS)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "too many fields, or bytes that are not UTF-8")
            return
        answer = self.server.answers.ask(name, {key: each[-1] for key, each in found.items()})
        self._send(HTTPStatus.OK, "application/json", json.dumps(answer).encode())

    def _refusal(self) -> Optional[Tuple[HTTPStatus, str]]:
        """Why the request is not answered, if it is not."""
        hosts: List[str] = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            return HTTPStatus.FORBIDDEN, "the host must be 127.0.0.1 or localhost"
        if not self.server.has_token(self.path):
            return (
                HTTPStatus.FORBIDDEN,
                "the address lacks the token, or the last slash: "
                "open the one that gloved explore printed last",
            )
        if not self.server.knows(self.connection):
            return HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again"
        self._received.deadline = None
        self.connection.settimeout(_IDLE_SECONDS)
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            return HTTPStatus.BAD_REQUEST, "a request has no body here"
        if self.headers.defects:
            # Headers behind the one that cannot be read may tell of a body.
            return HTTPStatus.BAD_REQUEST, "a header cannot be read"
        return None

    def send_error(
        self, code: int, message: Optional[str] = None, explain: Optional[str] = None
    ) -> None:
        """What http.server itself refuses: other methods, lines that are too long."""
        status = HTTPStatus(code)
        self._refuse(status, status.phrase)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        # What follows in the connection may be a body.
        self.close_connection = True
        self._send(status, "text/plain; charset=utf-8", f"{reason}\n".encode())

    def _send(self, status: HTTPStatus, content_type: str, data: bytes) -> None:
        self.send_response(status)
        headers: Dict[str, str] = {
            "Content-Type": content_type,
            "Content-Length": str(len(data)),
            "Content-Security-Policy": self.server.policy,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class PageServer(ThreadingHTTPServer):
    """Serves the page on a port of the loopback interface; 0 takes a free port.

    OSError: the port cannot be had.
    """

    daemon_threads = True
    # The listen backlog. Where it is full, others wait for a second or three.
    request_queue_size = 1024

    def __init__(self, answers: Answers, port: int) -> None:
        self.answers = answers
        self.page, self.policy = _page()
        self.path = f"/{secrets.token_urlsafe(24)}/"
        self._lock = threading.Lock()
        self._known: Set[socket.socket] = set()
        # Oldest first. A thread closes its connection only after it has left both.
        self._strangers: Dict[socket.socket, None] = {}
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{ADDRESS}:{self.server_port}{self.path}"

    def has_token(self, path: str) -> bool:
        """Whether a path begins with the token; takes as long if it nearly does."""
        begin = path[: len(self.path)].encode("utf-8", "surrogateescape")
        return hmac.compare_digest(begin, self.path.encode())

    def knows(self, connection: socket.socket) -> bool:
        """Takes a connection that has shown the token from the strangers; False if it cannot."""
        with self._lock:
            if connection in self._known:
                return True
            if connection not in self._strangers or len(self._known) >= _MAX_CONNECTIONS:
                return False
            del self._strangers[connection]
            self._known.add(connection)
            return True

    def _forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._known.discard(connection)
            self._strangers.pop(connection, None)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection, which has to show the token soon."""
        with self._lock:
            if len(self._strangers) >= _MAX_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                with contextlib.suppress(OSError):
                    # Its thread closes it.
                    oldest.shutdown(socket.SHUT_RDWR)
            self._strangers[request] = None
        try:
            super().process_request(request, client_address)
        except RuntimeError as error:
            say(f"a connection was refused: {error}")
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Ends a connection, whatever became of it."""
        self._forget(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves is no error; a bug is one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            say(f"a request failed, which is a bug: {error!r}")
