"""Where the daemon's socket is, and how to connect to it."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import stat
from typing import List, Optional, Union

from .errors import AccessDenied, ConnectionFailed

SYSTEM_SOCKET = "/run/gloved/gloved.sock"

Path = Union[str, "os.PathLike[str]"]


def candidates(path: Optional[Path]) -> List[str]:
    """The sockets to try, in order, as gloved-client does.

    A path is the only one. Otherwise $GLOVED_SOCKET is, if it is set: who names a daemon does not
    want another one's answers. If not, $XDG_RUNTIME_DIR/gloved.sock, then the system's.
    """
    if path is not None:
        return [os.fspath(path)]
    named = os.environ.get("GLOVED_SOCKET")
    if named:
        return [named]
    own = os.environ.get("XDG_RUNTIME_DIR")
    return ([os.path.join(own, "gloved.sock")] if own else []) + [SYSTEM_SOCKET]


def described(path: Optional[Path], model: Optional[str]) -> str:
    """The daemon and the model that are asked, for the repr() of a client."""
    named = "" if model is None else f", model={model!r}"
    return f"{' or '.join(candidates(path))!r}{named}"


_READ_BYTES = 256 * 1024


class Socket(socket.socket):
    """Closes itself without a ResourceWarning.

    A program may end with a client that nobody closed, as with any other object. At its end objects
    go in any order, so only the socket itself can do this.
    """

    def __del__(self) -> None:
        try:
            self.close()
        except AttributeError:
            # A signal's handler ended its __init__.
            pass


def connect(path: Optional[Path]) -> Socket:
    """A connected socket that does not block. Connecting to a Unix socket never waits.

    ConnectionFailed: no daemon accepts, or too many clients wait for it. AccessDenied: this user
    may not connect, and no other socket answers.
    """
    errors = []
    denied = []
    for each in candidates(path):
        try:
            return _connect(each)
        except BlockingIOError:
            errors.append(f"{each}: too many clients wait to be accepted")
        except PermissionError:
            denied.append(f"{each}: permission denied{_who_may(each)}")
        except OSError as error:
            if not _is_of_socket(error):
                raise
            is_file = os.path.exists(each) and not stat.S_ISSOCK(os.stat(each).st_mode)
            what = "is no socket" if is_file else error.strerror or error
            errors.append(f"{each}: {what}")
        except ValueError as error:
            errors.append(f"{each!r}: {error}")
    if denied:
        raise AccessDenied("; ".join(denied))
    raise ConnectionFailed(_not_reachable(errors))


def send(opened: Socket, outgoing: bytearray) -> bool:
    """Sends what there is room for, and deletes it from outgoing.

    False if the daemon has closed its side: nothing is left to send then, and what it answered
    before can still be read.
    """
    try:
        # A program that does not ignore SIGPIPE must not end because the daemon does.
        del outgoing[: opened.send(outgoing, socket.MSG_NOSIGNAL)]
    except BlockingIOError:
        pass
    except OSError as error:
        if not _is_of_socket(error):
            raise
        outgoing.clear()
        return False
    return True


def receive(opened: Socket) -> bytes:
    """What came, at least one byte.

    BlockingIOError: nothing yet. ConnectionFailed: the connection is over.
    """
    try:
        data = opened.recv(_READ_BYTES)
    except BlockingIOError:
        raise
    except OSError as error:
        if not _is_of_socket(error):
            raise
        raise ConnectionFailed(f"the connection to gloved failed: {error}") from None
    if not data:
        raise ConnectionFailed("gloved closed the connection before it answered")
    return data


def _is_of_socket(error: OSError) -> bool:
    """Whether a call in here failed. The handler of a signal may raise such an error meanwhile, as
    to end the call of a client: that one comes out of a frame of other code."""
    raised_at = error.__traceback__
    while raised_at is not None and raised_at.tb_next is not None:
        raised_at = raised_at.tb_next
    modules = (__name__, socket.__name__)
    return raised_at is not None and raised_at.tb_frame.f_globals.get("__name__") in modules


def _connect(path: str) -> Socket:
    opened = Socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.connect(path)
    except BaseException:
        opened.close()
        raise
    return opened


def _who_may(path: str) -> str:
    """Whom the modes let connect: that needs to write the socket, and to enter its directory."""
    for each, what, group_bit in (
        (path, "It", stat.S_IWGRP),
        (os.path.dirname(path) or ".", "Its directory", stat.S_IXGRP),
    ):
        try:
            status = os.stat(each)
        except OSError:
            continue
        for_group = bool(status.st_mode & group_bit)
        if (status.st_gid if for_group else status.st_uid) == 0:
            return ". Only root may connect"
        if not for_group:
            return f". {what} is for the user {_user(status.st_uid)} alone"
        try:
            group = grp.getgrgid(status.st_gid).gr_name
        except KeyError:
            return f". {what} is for the group {status.st_gid}, which has no name here"
        return (
            f". {what} is for the group {group}: have yourself added (`sudo adduser $USER"
            f" {group}`), and log in again"
        )
    return ". You may not enter its directory; ask the administrator"


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _not_reachable(errors: List[str]) -> str:
    return (
        "no gloved daemon answers: "
        + "; ".join(errors)
        + ". Start one with `gloved --model DIR`, or in Python with gloved.serve(DIR), or name its"
        " socket with $GLOVED_SOCKET"
    )
