"""gloved's programs, run by this process: a conversion, and a daemon that ends with it.

    vectors = gloved.serve(gloved.convert("glove.6B.100d.txt"))
    vectors.most_similar("king")

The programs are found in $GLOVED_BIN, a directory, or else in $PATH.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from multiprocessing import util
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _fork
from ._socket import Path
from .client import Client
from .errors import ConnectionFailed, ProgramFailed, Timeout
from .keyed_vectors import KeyedVectors

Option = Union[None, bool, int, float, str, "os.PathLike[str]", List[Any], Mapping[str, Any]]

_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar") + (
    ".txt", ".vec", ".bin", ".npy", ".npz", ".safetensors",
)  # fmt: skip
# A start that takes longer is told.
_QUIET_SECONDS = 1.0
_POLL_SECONDS = 0.02
_ENDING_SECONDS = 5.0
_LAST_ANSWERS_SECONDS = 1.0
# The path of a Unix socket is shorter.
_MAX_SOCKET_BYTES = 107


def convert(*sources: Path, model: Optional[Path] = None, **options: Option) -> str:
    """Makes a model of one download or several by gloved-convert; returns its directory.

    model     the directory; by default named after the first source, or its member, in the current
              directory: glove.6B.100d.model for glove.6B.100d.txt
    options   of gloved-convert: member="glove.6B.100d.txt" is --member glove.6B.100d.txt

    A model that is there already stays, if its report names the same sources with their sizes and
    these options, and neither a source nor the file with an array's words is newer.
    gloved-convert's messages go to sys.stderr.

    FileExistsError: there is a model of other sources or options, and `model` does not say that it
    may go. FileNotFoundError: there is no gloved-convert. ProgramFailed: it refused a source; an
    older model is unchanged then.
    """
    if not sources:
        raise TypeError("convert() needs a source, such as glove.6B.100d.txt")
    paths = [os.fspath(source) for source in sources]
    directory = os.fspath(model) if model is not None else _model_name(paths[0], options)
    report = _report(directory)
    if _is_made_of(report, paths, options):
        if _is_current(directory, report, paths):
            _say(f"{directory} is converted already")
            return directory
    elif model is None and os.path.exists(directory):
        raise FileExistsError(
            f"{directory} is there, and was not made of {', '.join(paths)} with these options:"
            " name the directory with model="
        )
    _say(f"converting {', '.join(paths)} to {directory}")
    command = [_program("gloved-convert"), *_arguments(options), "--", *paths, directory]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        assert process.stderr is not None
        last = ""
        try:
            for line in process.stderr:
                last = line
                _tell(line)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise ProgramFailed(_why_it_ended("gloved-convert", process.returncode, last))
    return directory


class LocalVectors(KeyedVectors):
    """KeyedVectors of a daemon that this process started: see serve(). close() ends the daemon."""

    def __init__(self, client: Client, daemon: _Daemon) -> None:
        super().__init__(client)
        self._daemon = daemon
        daemon.users.add(self)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Another process asks the daemon, and does not end it."""
        return KeyedVectors, (copy.copy(self._client),)

    def __enter__(self) -> LocalVectors:
        return self

    def close(self) -> None:
        """Closes the client, and ends the daemon unless another result of serve() uses it."""
        super().close()
        self._daemon.leave(self)


def serve(model: Path, **options: Option) -> LocalVectors:
    """Starts a daemon for a model, and returns the KeyedVectors of it.

    model     the directory of a model, as convert() returns it
    options   of gloved: threads=4 is --threads 4, and list={"animals": "animals.txt"} is
              --list animals=animals.txt

    Requests call the model by its directory's name, with _ for each blank or other character that
    the name of a model cannot have.

    The daemon is for this process and its children: its socket is in a directory that only this
    user may enter. It ends with close(), at the end of a `with` block, and with this process,
    however that ends; close() waits a second for answers that are on their way. A second call for
    the same model and options uses the daemon that runs, and lets it load the model again if that
    was replaced. In a child, serve() starts a daemon of the child: give it the vectors instead.

    Its log goes to sys.stderr while the start takes longer than a second, and is the message if it
    fails. NotADirectoryError: the model is a file. FileNotFoundError: there is no gloved.
    ProgramFailed: it did not start.
    """
    directory = os.path.realpath(os.fspath(model))
    if os.path.isfile(directory):
        raise NotADirectoryError(
            f"{directory} is a file, not a model: gloved.serve(gloved.convert(...)) makes one of it"
        )
    arguments = tuple(_arguments(options))
    with _daemons.lock:
        daemon = _daemons.started.get((directory, arguments))
        if daemon is not None and not daemon.reload():
            daemon.stop()
            daemon = None
        if daemon is None:
            daemon = _Daemon(directory, arguments)
            _daemons.started[directory, arguments] = daemon
        return LocalVectors(daemon.client(), daemon)


class _Daemon:
    """A gloved that this process started. It ends when its standard input does."""

    def __init__(self, model: str, arguments: Tuple[str, ...]) -> None:
        self.users: weakref.WeakSet[LocalVectors] = weakref.WeakSet()
        self._log = tempfile.TemporaryFile()
        self._directory = _private_directory()
        self._socket = os.path.join(self._directory, "gloved.sock")
        self._told = 0  # bytes of the log
        stdin, lifeline = os.pipe()
        # The daemon ends with it. Unbuffered it has no lock, which another thread may hold at a
        # fork. A child that is forked while the daemon starts closes it, too.
        self._lifeline = open(lifeline, "wb", buffering=0)
        _fork.watch(self)
        # Python may be a service of systemd's, which the daemon is not.
        environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        try:
            self._process = subprocess.Popen(
                [
                    _program("gloved"), "--model", f"{_name_for_requests(model)}={model}",
                    "--socket", self._socket,
                    *arguments, "--stop-at-eof",
                ],
                env=environment,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                # Ctrl-C in a terminal is for Python alone.
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self._remove()
            raise
        finally:
            os.close(stdin)
        # At the end of this process, once its children have ended that multiprocessing waits for;
        # never in a child. After the first call it does nothing.
        self.stop = util.Finalize(None, self._stop, exitpriority=-1)
        try:
            self._wait(model)
        except BaseException:
            self.stop()
            raise

    def client(self) -> Client:
        return Client(self._socket)

    def reload(self) -> bool:
        """Lets it load the model again if that was replaced. False: it ended."""
        if self._ended():
            return False
        try:
            with self.client() as client:
                client.reload()
        except ConnectionFailed:
            # A process that is killed closes its socket before it is gone.
            if self._ended(_ENDING_SECONDS):
                return False
            raise
        return True

    def _ended(self, seconds: float = 0) -> bool:
        """Whether it has ended, or does so within some seconds."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def leave(self, user: LocalVectors) -> None:
        with _daemons.lock:
            self.users.discard(user)
            if not self.users:
                self.stop()

    def _stop(self) -> None:
        self._lifeline.close()
        if not self._ended(_LAST_ANSWERS_SECONDS):
            # It waits for a client that does not read, as this process may have, or was stopped.
            self._process.kill()
            self._process.wait()
        self._remove()

    def after_fork(self) -> None:
        """The daemon ends with the process that started it, not with the last of its children."""
        self._lifeline.close()

    def _wait(self, model: str) -> None:
        """Until it answers."""
        began = time.monotonic()
        with Client(self._socket, timeout=0.5, retries=0) as client:
            while True:
                try:
                    client.ping()
                    return
                except (ConnectionFailed, Timeout):
                    pass
                if self._ended():
                    self._told = 0  # What sys.stderr has may be the reason.
                    why = _why_it_ended("gloved", self._process.returncode, self._new_log())
                    raise ProgramFailed(f"gloved did not start with {model}: {why}")
                if time.monotonic() - began > _QUIET_SECONDS:
                    _tell(self._new_log())
                time.sleep(_POLL_SECONDS)

    def _new_log(self) -> str:
        # The daemon writes at the place where it is: reading must not move that.
        content = os.pread(self._log.fileno(), 1 << 20, self._told)
        self._told += len(content)
        return content.decode(errors="replace")

    def _remove(self) -> None:
        self._lifeline.close()
        self._log.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def _name_for_requests(model: str) -> str:
    """The name of a model's directory, with _ for each character that requests cannot have in it:
    downloads have names with blanks, too."""
    return re.sub("[^A-Za-z0-9._-]", "_", os.path.basename(model))


def _private_directory() -> str:
    """A directory for a socket, that only this user may enter: short paths alone name sockets."""
    for parent in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):
        length = len(os.fsencode(parent)) + len("/gloved-12345678/gloved.sock")
        # A relative path means another directory after os.chdir().
        if os.path.isabs(parent) and length <= _MAX_SOCKET_BYTES:
            try:
                return tempfile.mkdtemp(prefix="gloved-", dir=parent)
            except OSError:
                # It is not there, not writable or full.
                pass
    raise OSError("there is no directory for a socket: set $TMPDIR to one with a short path")


class _Daemons:
    """The daemons that this process started, by model and options. Use them under the lock."""

    def __init__(self) -> None:
        self.started: Dict[Tuple[str, Tuple[str, ...]], _Daemon] = {}
        self.lock = threading.RLock()
        _fork.watch(self)

    def after_fork(self) -> None:
        self.lock = threading.RLock()


_daemons = _Daemons()


def _why_it_ended(program: str, status: int, told: str) -> str:
    """What a program told, unless a signal ended it: such as SIGKILL, where memory ran out."""
    told = told.strip()
    if status >= 0:
        return told or f"{program} told nothing, and ended with status {status}"
    name = signal.strsignal(-status)
    return f"signal {-status} ended {program} ({name}); before, it told: {told}"


def _say(text: str) -> None:
    _tell(f"gloved: {text}\n")


def _tell(text: str) -> None:
    """Writes to sys.stderr, which is None in a program that has no standard error."""
    if sys.stderr is not None:
        sys.stderr.write(text)


def _program(name: str) -> str:
    # No shell expands ~ where a notebook sets it.
    named = os.path.expanduser(os.environ.get("GLOVED_BIN", ""))
    found = shutil.which(name, path=named or None)
    if found is None:
        raise FileNotFoundError(
            f"there is no program {name} in "
            + (f"$GLOVED_BIN ({named})" if named else "$PATH")
            + ": install gloved, or name the directory of its programs with $GLOVED_BIN"
        )
    return found


def _is_given(value: Option) -> bool:
    return value is not None and value is not False


def _arguments(options: Mapping[str, Option]) -> List[str]:
    """Options as a command line has them."""
    arguments: List[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if not _is_given(value):
            continue
        if value is True:
            arguments.append(option)
            continue
        if isinstance(value, Mapping):
            value = [f"{key}={each}" for key, each in value.items()]
        for each in value if isinstance(value, (list, tuple)) else [value]:
            arguments += [option, os.fspath(each) if isinstance(each, os.PathLike) else str(each)]
    return arguments


def _model_name(source: str, options: Mapping[str, Option]) -> str:
    name = os.path.basename(str(options.get("member") or source))
    shortened = True
    while shortened:
        stem, suffix = os.path.splitext(name)
        shortened = suffix in _SUFFIXES and stem != ""
        name = stem if shortened else name
    return name + ".model"


def _report(directory: str) -> Dict[str, Any]:
    """What a model's report.json says; empty if there is none, or if it cannot be read."""
    try:
        with open(os.path.join(directory, "report.json"), encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}


def _sources(report: Dict[str, Any]) -> List[Dict[str, Any]]:
    described: List[Dict[str, Any]] = report.get("sources") or [report["source"]]
    return described


def _is_made_of(report: Dict[str, Any], sources: List[str], options: Mapping[str, Option]) -> bool:
    """Whether a model's report names these sources and options."""
    try:
        described = _sources(report)
        same = [os.path.realpath(each["name"]) for each in described] == [
            os.path.realpath(path) for path in sources
        ]
        first = described[0]
        had = {
            "limit": report["limit"],
            "on_error": report["skipped"]["rule"],
            "duplicates": report["duplicates"]["rule"],
            "format": report["format"],
            "dim": report["dim"],
            **{name: first[name] for name in ("member", "words", "tensor")},
        }
    except (KeyError, TypeError):
        return False
    wanted = {"limit": 0, "on_error": "stop", "duplicates": "first"}
    for name, value in options.items():
        # The others are not given, or do not change its answers.
        if _is_given(value) and name not in ("threads", "memory", "planes"):
            wanted[name] = value
    return same and all(name in had and str(had[name]) == str(wanted[name]) for name in wanted)


def _is_current(directory: str, report: Dict[str, Any], sources: List[str]) -> bool:
    """Whether the sources that a model's report names have their sizes, and none is newer, nor is
    the file with the words of an array."""
    words = [each["words"] for each in _sources(report) if each["words"] is not None]
    try:
        made = os.stat(os.path.join(directory, "report.json")).st_mtime
        now = [os.stat(path) for path in sources]
        read = now + [os.stat(path) for path in words]
    except OSError:
        return False
    sizes = [each["bytes"] for each in _sources(report)]
    return sizes == [each.st_size for each in now] and all(each.st_mtime <= made for each in read)
