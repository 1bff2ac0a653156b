"""Where the daemon's socket is."""

from __future__ import annotations

import os
from typing import List, Optional, Union

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


def not_reachable(errors: List[str]) -> str:
    """The message when no candidate answers; errors has one «path: reason» for each."""
    return (
        "no gloved daemon answers: "
        + "; ".join(errors)
        + ". Start one with `gloved --model DIR`, or name its socket with $GLOVED_SOCKET"
    )
