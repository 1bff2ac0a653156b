"""What a child process of a fork must not take over from its parent.

Another thread of the parent may have held a lock at the fork: in the child nobody releases it.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What has a lock, or a descriptor that the parent goes on using."""

    def after_fork(self) -> None:
        """Makes it usable in the child, whose only thread runs this."""


_all: weakref.WeakSet[Forked] = weakref.WeakSet()


def watch(forked: Forked) -> None:
    """Calls its after_fork() in each child, as long as it lives."""
    _all.add(forked)


def _after_fork() -> None:
    for forked in list(_all):
        forked.after_fork()


os.register_at_fork(after_in_child=_after_fork)
