"""A client of gloved, from common/wire/PROTOCOL.md alone: replies are (keys, lines of fields),
or objects after FORMAT json. Given the path of a socket, it checks itself."""
import json
import re
import socket
import sys
import threading


class Refused(Exception):
    """An ERR reply: args are its code, its message and, of JSON, the whole object."""


class Client:
    def __init__(self, path, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rb")

    def line(self):
        line = self.stream.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the daemon closed the connection")
        return line[:-1]

    def reply(self):
        status = self.line()
        if status.startswith(b"{"):
            reply = json.loads(status)
            return reply if reply["ok"] else Refused(reply["code"], reply["message"], reply)
        kind, first, *rest = status.split(b" ")
        if kind == b"ERR":
            return Refused(first.decode(), b" ".join(rest))
        lines = [self.line().split(b"\t") for _ in range(int(first))]
        return dict(key.decode().split("=", 1) for key in rest), lines

    def pipeline(self, requests):  # A thread sends: answers that lie unread stop the daemon.
        threading.Thread(target=self.socket.sendall, args=[b"\n".join([*requests, b""])]).start()
        return (self.reply() for _ in requests)

    def ask(self, request):
        reply = next(self.pipeline([request]))
        if isinstance(reply, Refused):
            raise reply
        return reply


def quote(word):  # for a request
    return b'"%b"' % re.sub(rb'[\0-\x1f"\\]', lambda byte: b"\\x%02x" % ord(byte[0]), word)


def word(text):  # a word in JSON
    return b"".join(c.encode() if c < "\U0010ff80" else bytes([ord(c) & 255]) for c in text)


if __name__ == "__main__":
    every = bytes(range(256)) + "\U0010ffff".encode()
    _, reply = Client(sys.argv[1]).pipeline([b"FORMAT json", b"HAS " + quote(every)])
    assert word(reply["results"][0]["word"]) == every
