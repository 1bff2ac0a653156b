"""gloved.convert() and gloved.serve(): from a download to answers, and no daemon is left behind."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

import gloved
import gloved.local
import harness
from conftest import PATIENCE_SECONDS, REPOSITORY, is_gone


@pytest.fixture(autouse=True)
def programs(bin_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOVED_BIN", str(bin_dir))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def served(model_dir: Path) -> Iterator[gloved.LocalVectors]:
    with gloved.serve(model_dir, engine="cpu") as vectors:
        yield vectors


def process_of(vectors: gloved.LocalVectors) -> int:
    return vectors._daemon._process.pid


def test_three_lines_from_a_download_to_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    vectors = gloved.serve(gloved.convert(harness.SAMPLE), engine="cpu")
    assert vectors.most_similar("king", topn=1)[0][0] == "prince"
    pid = process_of(vectors)
    vectors.close()
    assert is_gone(pid)
    assert "10002 words" in capsys.readouterr().err


def test_a_source_is_converted_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "own.txt"
    source.write_text("a 1 2\nb 3 4\nc 5 6\n")

    def messages(**options: object) -> str:
        assert gloved.convert(source, **options) == "own.model"  # type: ignore[arg-type]
        return capsys.readouterr().err

    assert "3 words" in messages()
    assert "converted already" in messages()
    assert "converted already" in messages(threads=1, planes="none")
    assert "converted already" in messages(limit=None, member=False)
    with pytest.raises(FileExistsError, match="own.model is there.*model="):
        gloved.convert(source, limit=2)
    with pytest.raises(FileExistsError, match="own.model is there"):
        gloved.convert(source, harness.SAMPLE)
    assert "2 words" in messages(limit=2, model="own.model")
    assert "converted already" in messages(limit=2)
    assert "3 words" in messages(model="own.model")
    source.write_text("a 1 2\nb 3 4\nc 5 7\n")
    os.utime(source, (time.time() + 60,) * 2)
    assert "3 words" in messages()
    source.write_text("a 1 2\nb 3 4\n")
    os.utime(source, (0, 0))
    assert "2 words" in messages()


@pytest.mark.parametrize("beside", [False, True])
def test_an_array_is_converted_again_for_other_words(beside: bool, tmp_path: Path) -> None:
    """Those that an option names, or a tokenizer.json beside safetensors."""
    header = b'{"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
    numbers = struct.pack("<4f", 1, 2, 3, 4)
    source = tmp_path / "own.safetensors"
    source.write_bytes(struct.pack("<Q", len(header)) + header + numbers)
    words = tmp_path / "tokenizer.json"
    options = {} if beside else {"words": words}
    for name in "b", "c":
        words.write_text(json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0, name: 1}}}))
        with gloved.serve(gloved.convert(source, **options), engine="cpu") as vectors:
            assert vectors.index_to_key == ["a", name]


@pytest.mark.parametrize("name", ["wiki (1)", "wörter=ä", "line\nline"])
def test_a_download_may_have_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.txt").write_text("a 1 2\nb 3 4\n")
    with gloved.serve(gloved.convert(f"{name}.txt"), engine="cpu") as vectors:
        assert len(vectors) == 2
        (model,) = vectors.client.models()
        assert vectors.client.near("a", k=1, model=model.model)[0].word == "b"


def test_a_source_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text("<!DOCTYPE html>\n")
    with pytest.raises(gloved.ProgramFailed, match="HTML or XML page"):
        gloved.convert("page.txt")
    with pytest.raises(gloved.ProgramFailed, match="missing.txt"):
        gloved.convert("missing.txt")
    assert not list(tmp_path.glob("*.model"))


def test_a_program_without_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_text("a 1 2\nb 3 4\n")
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(gloved.local, "_QUIET_SECONDS", 0)
    with gloved.serve(gloved.convert("own.txt"), engine="cpu") as vectors:
        assert len(vectors) == 2
    assert gloved.convert("own.txt") == "own.model"
    assert capsys.readouterr().out == ""


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GLOVED_BIN", str(tmp_path))
    for call in gloved.convert, gloved.serve:
        with pytest.raises(FileNotFoundError, match=r"\$GLOVED_BIN \(/.*\): install"):
            call("x.txt")
    monkeypatch.delenv("GLOVED_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"\$PATH: install gloved"):
        gloved.serve("x")


def test_places_of_programs(
    bin_dir: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(bin_dir.parent))
    monkeypatch.setenv("PATH", str(bin_dir))
    for named in f"~/{bin_dir.name}", os.path.relpath(bin_dir), "":
        monkeypatch.setenv("GLOVED_BIN", named)
        with gloved.serve(model_dir, engine="cpu") as vectors:
            assert len(vectors) == 10002


def test_a_daemon_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(gloved.ProgramFailed, match="did not start with .*no-model"):
        gloved.serve(tmp_path / "no-model")
    with pytest.raises(NotADirectoryError, match="is a file, not a model.*gloved.convert"):
        gloved.serve(harness.SAMPLE)
    with pytest.raises(gloved.ProgramFailed, match="--no-option"):
        gloved.serve(tmp_path, no_option=1)


def test_options(model_dir: Path) -> None:
    lists = {"animals": REPOSITORY / "data/animals.txt"}
    with gloved.serve(model_dir, engine="cpu", list=lists, max_k=20, access_log="on") as vectors:
        nearest = vectors.client.near("snake", k=1, within="animals")
        assert [each.word for each in nearest] == ["cat"]
        with pytest.raises(gloved.BadRequest, match="20"):
            vectors.client.near("snake", k=21)


def test_a_program_that_a_signal_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "gloved", "gloved-convert":
        (tmp_path / name).write_text("#!/bin/sh\necho reading >&2\nkill -KILL $$\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("GLOVED_BIN", str(tmp_path))
    killed = r"signal 9 ended gloved.* \(Killed\).*reading"
    for call in gloved.convert, gloved.serve:
        with pytest.raises(gloved.ProgramFailed, match=killed):
            call("x")
    (tmp_path / "gloved").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(gloved.ProgramFailed, match="did not start with .* ended with status 3"):
        gloved.serve("x")


def test_a_start_that_takes_long_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gloved").write_text("#!/bin/sh\necho no engine >&2\nsleep 0.5\nexit 1\n")
    (tmp_path / "gloved").chmod(0o755)
    monkeypatch.setenv("GLOVED_BIN", str(tmp_path))
    monkeypatch.setattr(gloved.local, "_QUIET_SECONDS", 0)
    with pytest.raises(gloved.ProgramFailed, match="no engine"):
        gloved.serve("x")
    assert capsys.readouterr().err == "no engine\n"


def test_a_second_call_uses_the_daemon_that_runs(model_dir: Path) -> None:
    first = gloved.serve(model_dir, engine="cpu")
    second = gloved.serve(os.path.relpath(model_dir), engine="cpu")
    other = gloved.serve(model_dir, engine="cpu", max_k=20)
    pid = process_of(first)
    assert process_of(second) == pid != process_of(other)
    first.close()
    assert second.similarity("king", "queen") > 0.7
    second.close()
    second.close()
    assert is_gone(pid)
    assert other.similarity("king", "queen") > 0.7
    other.close()
    with gloved.serve(model_dir, engine="cpu") as again:
        assert process_of(again) != pid


def test_a_second_call_loads_a_model_that_was_replaced(tmp_path: Path) -> None:
    source = tmp_path / "own.txt"
    source.write_text("a 1 2\nb 3 4\n")
    with gloved.serve(gloved.convert(source), engine="cpu") as vectors:
        source.write_text("a 1 2\nb 3 4\nc 5 6\n")
        with gloved.serve(gloved.convert(source), engine="cpu") as more:
            assert process_of(more) == process_of(vectors)
            assert len(more) == 3


def test_a_daemon_that_died_is_started_again(served: gloved.LocalVectors, model_dir: Path) -> None:
    os.kill(process_of(served), signal.SIGKILL)
    assert is_gone(process_of(served))
    with gloved.serve(model_dir, engine="cpu") as again:
        assert again.similarity("king", "queen") > 0.7
        # Nothing of it is left, though nobody closed its vectors.
        assert not Path(served._daemon._directory).exists()


def test_the_directory_of_a_socket(
    model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "file").touch()
    for runtime in "t", str(tmp_path / "file"), str(tmp_path / "absent"), "":
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        with gloved.serve(model_dir, engine="cpu") as vectors:
            assert vectors._daemon._directory.startswith(f"{tmp_path}/t/")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "t"))
    with pytest.raises(FileNotFoundError, match="absent"):
        gloved.serve(model_dir, engine="cpu")
    assert not list((tmp_path / "t").iterdir())


def test_a_copy_asks_and_does_not_end_the_daemon(served: gloved.LocalVectors) -> None:
    for copied in copy.copy(served), pickle.loads(pickle.dumps(served)):
        with copied:
            assert type(copied) is gloved.KeyedVectors
            assert copied.most_similar("king") == served.most_similar("king")
    assert served.similarity("king", "queen") > 0.7


def leave_unread(vectors: gloved.LocalVectors) -> object:
    """Asks for more than a socket holds, and keeps the call that has not read it."""
    answers = vectors.most_similar_many(vectors.index_to_key[:500], topn=1000)
    next(answers)
    return answers


@pytest.mark.parametrize(
    "hinder", [leave_unread, lambda vectors: os.kill(process_of(vectors), signal.SIGSTOP)]
)
def test_close_does_not_wait_for_what_never_comes(
    hinder: Callable[[gloved.LocalVectors], object], model_dir: Path
) -> None:
    vectors = gloved.serve(model_dir, engine="cpu", drain_timeout=600)
    kept = hinder(vectors)
    closing = threading.Thread(target=vectors.close)
    closing.start()
    closing.join(PATIENCE_SECONDS)
    try:
        assert not closing.is_alive(), kept
    finally:
        if closing.is_alive():
            os.kill(process_of(vectors), signal.SIGKILL)
            closing.join()


BEGIN = """
import os, signal, subprocess, sys, threading, time
import gloved
vectors = gloved.serve(sys.argv[1], engine="cpu")
assert vectors.similarity("king", "queen") > 0.7
print(vectors._daemon._process.pid, flush=True)
"""

# How a process ends, and whether it can tidy up.
ENDS = {
    "normally": ("", True),
    "by an exception": ("raise KeyError('x')", True),
    "by sys.exit": ("sys.exit(3)", True),
    "by Ctrl-C": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", True),
    "by Ctrl-C in a terminal": ("os.killpg(0, signal.SIGINT); time.sleep(60)", True),
    "by SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", False),
    "by kill -9": ("os.kill(os.getpid(), signal.SIGKILL)", False),
    "by os._exit": ("os._exit(1)", False),
    "by abort": ("os.abort()", False),
    "by exec": ("os.execv('/bin/true', ['true'])", False),
    "with a child of a fork that goes on": (
        "if os.fork() == 0: os.close(1); time.sleep(60); os._exit(0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)",
        False,
    ),
    "after a child that closed it": (
        "if os.fork() == 0: vectors.close(); sys.exit(0)\n"
        "os.wait(); assert vectors.similarity('king', 'queen') > 0.7",
        True,
    ),
    "with a program that it started": ("subprocess.Popen(['sleep', '60'], stdout=2)", True),
    "as one of multiprocessing's": (
        "vectors.close()\n"
        "def run():\n"
        "    vectors = gloved.serve(sys.argv[1], engine='cpu')\n"
        "    print(vectors._daemon._process.pid, flush=True)\n"
        "import multiprocessing\n"
        "multiprocessing.get_context('fork').Process(target=run).start()",
        True,
    ),
    "after a thread started it": (
        "vectors.close()\n"
        "def run(): global vectors; vectors = gloved.serve(sys.argv[1], engine='cpu')\n"
        "thread = threading.Thread(target=run); thread.start(); thread.join()\n"
        "assert vectors.similarity('king', 'queen') > 0.7\n"
        "print(vectors._daemon._process.pid, flush=True)",
        True,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_no_daemon_is_left_when_python_ends(end: str, model_dir: Path, tmp_path: Path) -> None:
    code, tidies = ENDS[end]
    work = tmp_path / "t"
    work.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + code, str(model_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "TMPDIR": str(work),
             "XDG_RUNTIME_DIR": ""},
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        pids = [int(line) for line in process.stdout]
        process.wait(PATIENCE_SECONDS)
        assert pids and all(map(is_gone, pids))
        assert not tidies or not list(work.iterdir())
    finally:
        # A child that goes on is in the session.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_children_that_python_waits_for_get_answers(model_dir: Path) -> None:
    """Also where multiprocessing was imported before, as by joblib."""
    code = """
import multiprocessing.util, sys, time
import gloved
vectors = gloved.serve(sys.argv[1], engine="cpu")
def ask():
    # The parent is at its end.
    time.sleep(1)
    print(vectors.most_similar("king", topn=1)[0][0])
multiprocessing.get_context("fork").Process(target=ask).start()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(model_dir)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("prince\n", "")


def test_a_child_of_a_fork_goes_on_while_a_thread_closes(model_dir: Path) -> None:
    code = """
import os, sys, threading
import gloved
def fork():
    while not done:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
done = False
thread = threading.Thread(target=fork)
thread.start()
for _ in range(30):
    gloved.serve(sys.argv[1], engine="cpu").close()
done = True
thread.join()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(model_dir)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
        start_new_session=True,
    )
    try:
        assert process.wait(2 * PATIENCE_SECONDS) == 0
    finally:
        # A child that waits for ever is in the session.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_child_of_a_fork_during_the_start_does_not_hold_the_daemon(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen
    statuses: List[int] = []

    def start_and_fork(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        daemon = start(*arguments, **options)
        child = os.fork()
        if child == 0:
            pipe = os.stat(f"/proc/{daemon.pid}/fd/0").st_ino
            own = [path for path in Path("/proc/self/fd").iterdir() if path.exists()]
            ends = [int(path.name) for path in own if path.stat().st_ino == pipe]
            os._exit(any(fcntl.fcntl(end, fcntl.F_GETFL) & os.O_WRONLY for end in ends))
        statuses.append(os.waitpid(child, 0)[1])
        return daemon

    monkeypatch.setattr(subprocess, "Popen", start_and_fork)
    gloved.serve(model_dir, engine="cpu").close()
    assert statuses == [0]


def test_the_daemon_tells_systemd_nothing(
    model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service:
        service.bind(str(tmp_path / "notify"))
        service.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        gloved.serve(model_dir, engine="cpu").close()
        with pytest.raises(BlockingIOError):
            service.recv(1000)


def test_stop_at_eof_needs_something_that_ends_later(bin_dir: Path, model_dir: Path) -> None:
    done = subprocess.run(
        [bin_dir / "gloved", "--model", model_dir, "--stop-at-eof"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert "--stop-at-eof needs a pipe, a socket or a terminal as standard input" in done.stderr
