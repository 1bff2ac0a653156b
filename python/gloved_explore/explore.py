"""python3 -m gloved explore: a page in the browser to walk through a model."""

from __future__ import annotations

import argparse
import signal
import sys
import webbrowser
from threading import Thread
from typing import Any

from gloved._command import Commands, Fault, new_command, whole_number
from gloved._vectors import numpy
from gloved.client import Client

from .answers import Answers

_EXPLORE = """Serves a page to walk through a model: words and expressions with their neighbours
as you type, a map of them, analogies, the odd one out, and the similarity of two words.

The page is for browsers of this machine, and for whoever knows its address, which has a token. It
loads nothing from elsewhere and changes nothing. Needs numpy."""

_EXPLORE_EXAMPLES = """examples:
  python3 -m gloved explore
  python3 -m gloved explore --open --model glove
  ssh -t -L 8017:127.0.0.1:8017 HOST python3 -m gloved explore --port 8017"""


def add_to(commands: Commands) -> None:
    """Adds the command to a command line."""
    explore = new_command(
        commands, "explore", "walk through a model in the browser", _EXPLORE, _EXPLORE_EXAMPLES
    )
    explore.add_argument(
        "--port",
        type=whole_number(0, 65535),
        default=0,
        help="port of 127.0.0.1 to listen on (default: a free one)",
    )
    explore.add_argument("--open", action="store_true", help="open the page in a browser")
    explore.set_defaults(run=_run)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _open(url: str) -> None:
    if not webbrowser.open(url):
        print("no browser was found", file=sys.stderr)


def _run(options: argparse.Namespace) -> None:
    if numpy is None:
        raise Fault("explore needs numpy (package python3-numpy)")
    # http.server is imported by this command alone.
    from .server import ADDRESS, PageServer

    signal.signal(signal.SIGTERM, _interrupt)
    with Client(options.socket, retries=0) as client:
        # A daemon that does not answer, or lacks the model, is told now.
        client.stats(model=options.model)
    with Client(options.socket) as client:
        try:
            server = PageServer(Answers(client, options.model), options.port)
        except OSError as error:
            raise Fault(
                f"port {options.port} of {ADDRESS}: {error.strerror}; "
                "name another with --port, or none for a free one"
            ) from None
        with server:
            try:
                print(f"{server.url}\nis the address of the page. Ctrl-C ends it.", flush=True)
                if options.open:
                    # Some browsers return when they are closed: they are answered meanwhile.
                    Thread(target=_open, args=(server.url,), daemon=True).start()
                server.serve_forever()
            except KeyboardInterrupt:
                pass
