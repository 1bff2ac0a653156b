"""python3 -m gloved: pictures of neighbourhoods, a page to walk through them, maps, and figures."""

from __future__ import annotations

import argparse
import sys
from typing import Optional, Sequence

from gloved_explore import explore, plot, word_map

from . import _eval, _research
from ._command import Parser, run
from ._version import __version__


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python3 -m gloved", description="Asks a gloved daemon, and shows what it answers."
    )
    parser.add_argument("--version", action="version", version=f"gloved {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (plot, explore, word_map, _eval, _research):
        command.add_to(commands)
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line; returns the exit status. Wrong usage ends the process with 2."""
    return run(_parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
