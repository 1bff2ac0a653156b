"""How the commands of python3 -m gloved write files: whole, and never over those of others."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Callable, Iterable

from gloved._command import Fault


def refuse_foreign(path: Path, is_own: Callable[[Path], bool], force: bool) -> None:
    """Fault: there is a file that its content does not show to be of this command."""
    if force or not path.exists():
        return
    try:
        owned = is_own(path)
    except FileNotFoundError:
        owned = False
    if not owned:
        raise Fault(f"{path} is not a file that this command made; remove it, or add --force")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def replace(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file whole or not at all. Fault: its directory takes no new file."""
    try:
        new = tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)
    except OSError as error:
        # The error names the new file, of which nobody knows.
        raise Fault(f"{path}: cannot write: {error.strerror}") from None
    with new as file:
        try:
            file.writelines(parts)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
