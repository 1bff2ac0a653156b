"""Fixtures: the sample of data/ as a model, and daemons of gloved that serve it.

    GLOVED_BIN=build/dev/bin /usr/bin/python3 -m pytest python/tests

GLOVED_BIN is the directory of gloved's programs: build/dev/bin of the repository by default.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# Options for the lists of data/.
LISTS = [
    option
    for name in ("animals", "pets")
    for option in ("--list", f"{name}={REPOSITORY}/data/{name}.txt")
]

# For a process to end, or a program.
PATIENCE_SECONDS = 20

sys.path[:0] = [str(REPOSITORY / name) for name in ("python", "tests/faults")]

import gloved  # noqa: E402
import harness  # noqa: E402
import gloved.__main__  # noqa: E402


def run_command(
    *arguments: str, stdin: bytes = b"", cwd: Path = REPOSITORY
) -> subprocess.CompletedProcess[bytes]:
    """Runs python3 -m gloved to its end, but in this process: libraries are imported once."""
    before = os.getcwd()
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        os.chdir(cwd)
        try:
            status = gloved.__main__.main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
        finally:
            os.chdir(before)
    texts = []
    for each in out, err:
        each.flush()
        texts.append(each.buffer.getvalue())  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(arguments, status, *texts)


def run_process(
    command: str, *options: str, stdin: bytes = b"", cwd: Path = REPOSITORY
) -> subprocess.CompletedProcess[bytes]:
    """Runs python3 -m gloved COMMAND to its end. It must not show a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "gloved", command, *options],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def is_gone(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


class Daemon(harness.Service):
    """A gloved of its own. `socket` is the path, for Client(daemon.socket)."""

    def __init__(self, bin_dir: Path, directory: Path, *options: str) -> None:
        self.socket = str(directory / "gloved.sock")
        super().__init__(bin_dir, directory, None, *options, engine=None, path=self.socket)

    def restart(self) -> None:
        """A new process on the same socket."""
        assert self.stop() == []
        self.start()


@pytest.fixture(scope="session")
def bin_dir() -> Path:
    """The directory of gloved's programs."""
    directory = Path(os.environ.get("GLOVED_BIN", REPOSITORY / "build" / "dev" / "bin"))
    if not (directory / "gloved").exists():
        pytest.fail(f"no gloved in {directory}: build it, or name its directory with $GLOVED_BIN")
    return directory.resolve()


@pytest.fixture(scope="session")
def convert(bin_dir: Path) -> Callable[[Path, Path], Path]:
    """A function (source, directory) that converts vectors and returns the directory."""

    def run(source: Path, directory: Path) -> Path:
        return Path(harness.convert(bin_dir, source, directory))

    return run


@pytest.fixture(scope="session")
def model_dir(
    convert: Callable[[Path, Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The sample's 10,002 words as a model. Tests must not change it."""
    return convert(Path(harness.SAMPLE), tmp_path_factory.mktemp("sample") / "model")


def _serving(bin_dir: Path) -> Iterator[Callable[..., Daemon]]:
    # Not pytest's directories: the path of a socket has at most 107 bytes.
    with contextlib.ExitStack() as stack:

        def start(*options: str) -> Daemon:
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="gloved-test-"))
            return stack.enter_context(Daemon(bin_dir, Path(work), *options))

        yield start


@pytest.fixture
def serve(bin_dir: Path) -> Iterator[Callable[..., Daemon]]:
    """A function that starts a Daemon with options, such as serve("--model", str(model_dir)).

    The test's daemons end with the test.
    """
    yield from _serving(bin_dir)


@pytest.fixture
def serve_text(
    serve: Callable[..., Daemon], convert: Callable[[Path, Path], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[bytes], Daemon]:
    """A function that starts a Daemon with a model of some lines of GloVe text."""

    def start(text: bytes) -> Daemon:
        work = tmp_path_factory.mktemp("text")
        (work / "text").write_bytes(text)
        return serve("--model", str(convert(work / "text", work / "model")))

    return start


@pytest.fixture(scope="session")
def serve_all(bin_dir: Path) -> Iterator[Callable[..., Daemon]]:
    """As serve, for daemons that several tests share."""
    yield from _serving(bin_dir)


@pytest.fixture(scope="session")
def daemon(serve_all: Callable[..., Daemon], model_dir: Path) -> Daemon:
    """A Daemon that serves the sample to all tests: a test that stops it starts it again."""
    return serve_all("--model", str(model_dir), *LISTS)


@pytest.fixture
def client(daemon: Daemon) -> Iterator[gloved.Client]:
    """A Client of the daemon, with its default options."""
    with gloved.Client(daemon.socket) as opened:
        yield opened


@pytest.fixture
def own_model_dir(model_dir: Path, tmp_path: Path) -> Path:
    """A copy of the sample's model, for a test that replaces it and reloads."""
    return Path(shutil.copytree(model_dir, tmp_path / "model"))
