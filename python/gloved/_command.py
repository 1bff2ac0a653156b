"""What the commands of python3 -m gloved share: faults, messages, and options of the daemon."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import re
import signal
import stat
import sys
import threading
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    Mapping,
    NoReturn,
    Optional,
    Sequence,
)

from ._lines import lines_of
from ._wire import CODE_POINTS_OF_BYTES, quote
from .errors import GlovedError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = Any


class Fault(Exception):
    """What went wrong, for the user."""


class Parser(argparse.ArgumentParser):
    """A command line. Wrong usage ends the process with one line of message and status 2."""

    def error(self, message: str) -> NoReturn:
        say(f"{message}; see {self.prog} --help")
        sys.exit(2)


def visible(text: str) -> str:
    """The text with \\xHH for what cannot be shown: control characters, and bytes outside UTF-8."""
    return "".join(
        each
        if each.isprintable()
        else "".join(f"\\x{byte:02x}" for byte in each.encode("utf-8", "surrogateescape"))
        for each in text
    )


_program = "python3 -m gloved"


def say(message: str) -> None:
    """A line on standard error, if that can be written."""
    if sys.stderr is None:
        return
    try:
        print(f"{_program}: {visible(message)}", file=sys.stderr)
    except OSError:
        # Python would try again at its end, and change the exit status.
        sys.stderr = None  # type: ignore[assignment]


_TOLD_WORDS = 20


def some_of(words: Sequence[str]) -> str:
    """The first of the words, for a message: in quotes, which show blanks."""
    return _some(list(map(quote, words)))


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _TOLD_WORDS
    return ", ".join(texts[:_TOLD_WORDS]) + (f" and {more} more" if more > 0 else "")


def unknown_words(words: Sequence[str]) -> str:
    """The first of words that the model has not, for a message, and what may be the reason."""
    is_utf8 = not any("\udc80" <= each <= "\udcff" for word in words for each in word)
    return some_of(words) + (
        "" if is_utf8 else "; \\xHH is not UTF-8: convert a file with `iconv -f LATIN1 -t UTF-8`"
    )


def say_how_found(skipped: Sequence[str], replaced: Mapping[str, str]) -> None:
    """What gloved-client tells too: words that the model has not, or in another case alone."""
    if skipped:
        say(f"not in the model and left out: {unknown_words(skipped)}")
    if replaced:
        pairs = [f"{quote(typed)} ({quote(taken)})" for typed, taken in replaced.items()]
        say(f"taken in another case or Unicode form: {_some(pairs)}")


def name_of(path: str) -> str:
    """A file in messages; - is standard input."""
    return "stdin" if path == "-" else path


_SECONDS_BEFORE_TOLD = 1.0


def _open(path: str) -> IO[bytes]:
    if path == "-":
        if sys.stdin is None:
            raise Fault("stdin is closed")
        return sys.stdin.buffer
    told = f"{path}: waiting for a program that writes to this FIFO"
    teller = threading.Timer(_SECONDS_BEFORE_TOLD, say, (told,))
    teller.daemon = True
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            # Opening it waits for the writer.
            teller.start()
        return open(path, "rb")
    except IsADirectoryError:
        raise Fault(f"{path}: is a directory, not a file") from None
    except OSError as error:
        raise Fault(f"{path}: cannot open: {error.strerror}") from None
    finally:
        teller.cancel()


@contextlib.contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A file to read; - is standard input. Fault: it cannot be opened, or not be read."""
    with _open(path) as file:
        try:
            yield file
        except OSError as error:
            raise Fault(f"{name_of(path)}: cannot read: {error.strerror}") from None


def words_of_file(path: Optional[str]) -> Dict[str, int]:
    """The words of a file, a word a line, and the number of the line where each comes first.

    None has no word. Empty lines are skipped. A first line that may be the heading of a table is a
    word, which would change figures unseen, and is told.
    """
    found: Dict[str, int] = {}
    if path is None:
        return found
    name = name_of(path)
    with opened(path) as file:
        for number, word in lines_of(file, name, errors="surrogateescape"):
            if word:
                found.setdefault(word, number)
            if number == 1 and word.lower() in ("word", "words"):
                say(f'{name}: line 1: "{word}" is taken for a word; if it is a heading, remove it')
    return found


def write(lines: Iterable[str]) -> None:
    """Lines on standard output, where bytes of words that are not UTF-8 are written as they are.
    Fault: they cannot be written."""
    if sys.stdout is None:
        raise Fault("stdout is closed")
    try:
        sys.stdout.buffer.writelines(line.encode("utf-8", "surrogateescape") for line in lines)
        sys.stdout.flush()
    except OSError as error:
        # Python would try again at its end.
        sys.stdout = None  # type: ignore[assignment]
        raise Fault(f"stdout: cannot write: {error.strerror}") from None


def _for_terminal(text: str) -> str:
    """Text for standard output: visible if that is a terminal."""
    is_seen = sys.stdout is not None and sys.stdout.isatty()
    return visible(text) if is_seen else text


def write_json(members: Mapping[str, Any]) -> None:
    """An object in a line of JSON, where words have their bytes as the daemon shows them."""
    text = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    write([_for_terminal(text.translate(CODE_POINTS_OF_BYTES)) + "\n"])


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows of a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


# A word from a command line may have what separates cells and rows.
_SEPARATORS = str.maketrans("\t\n\r", "   ")


def write_table(rows: Iterable[Sequence[str]], form: str = "tsv") -> None:
    """Rows of a table: csv, tsv, or text with columns of equal width."""
    shown = ([_for_terminal(each) for each in row] for row in rows)
    if form == "csv":
        write([as_csv(shown)])
        return
    lines = ([each.translate(_SEPARATORS) for each in row] for row in shown)
    if form == "text":
        table = list(lines)
        widths = [max(map(len, column)) for column in zip(*table)]
        write("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in table)
    else:
        write("\t".join(row) + "\n" for row in lines)


def run(parser: argparse.ArgumentParser, arguments: Optional[Sequence[str]]) -> int:
    """Runs a command line; returns the exit status. Wrong usage ends the process with 2."""
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            # The help of the command tells what it takes, not that of all commands.
            options.fail(f"unrecognized arguments: {' '.join(unknown)}")
        options.run(options)
    except (Fault, GlovedError, ValueError, OSError) as fault:
        say(str(fault))
        return 1
    except KeyboardInterrupt:
        # A shell ends its loop only after a program that the signal itself has ended.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 0


def run_program(parser: argparse.ArgumentParser) -> int:
    """Runs the command line of this process as a program of its own: messages have its name."""
    global _program
    _program = parser.prog
    return run(parser, None)


def whole_number(least: int, most: int = 2**32 - 1) -> Callable[[str], int]:
    """The type of an option."""

    def read(text: str) -> int:
        # int() takes more: signs, blanks, underscores, and the digits of other scripts.
        if not re.fullmatch("[0-9]{1,10}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"a number from {least} to {most}, not {text}")
        return int(text)

    return read


def new_command(
    commands: Commands, name: str, summary: str, description: str, examples: str
) -> argparse.ArgumentParser:
    """A parser with the options that choose a daemon and a model."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(fail=parser.error)
    parser.add_argument("--model", help="a model of the daemon (default: its first)")
    parser.add_argument("--socket", metavar="PATH", help="the daemon's socket, as gloved-client's")
    return parser
