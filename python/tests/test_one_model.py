"""Calls of several requests while the daemon gets another model: no result is of both."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from calls import Ask, Swap, all_calls, plain, text_of_model
from conftest import REPOSITORY, Daemon

import gloved
from gloved import KeyedVectors, _snapshot
from gloved._wire import Request


class Swapping(gloved.Client):
    """A client that sends one request at a time, and swaps the models before number `at`."""

    def __init__(self, client: gloved.Client, swap: Callable[[], None], at: int) -> None:
        super().__init__("/nowhere", model=client.model)
        self.sent = 0
        self._client = client
        self._swap = swap
        self.at = at

    def ask(self, request: Request[Any]) -> Any:
        self.sent += 1
        if self.sent == self.at:
            self._swap()
        return self._client.ask(request)

    def ask_all(
        self,
        asked: Iterator[Request[Any]],
        *,
        return_exceptions: bool = False,
        ahead: int = 256,
    ) -> Iterator[Any]:
        for request in asked:
            try:
                yield self.ask(request)
            except gloved.GlovedError as error:
                if not return_exceptions:
                    raise
                yield error


class Models:
    """A daemon whose model can be replaced."""

    def __init__(self, daemon: Daemon, swap: Swap) -> None:
        self.client = gloved.Client(daemon.socket)
        self._swap = swap

    def swap(self) -> None:
        self._swap.swap()
        self.client.reload()

    def swapping(self, at: int) -> Swapping:
        return Swapping(self.client, self.swap, at)


@pytest.fixture(scope="module")
def models(
    serve_all: Callable[..., Daemon], convert: Callable[[Path, Path], Path]
) -> Iterator[Models]:
    with tempfile.TemporaryDirectory(prefix="gloved-test-") as work:
        paths = []
        for seed in 1, 2:
            text = Path(work, f"text{seed}")
            text.write_bytes(text_of_model(seed))
            paths.append(convert(text, Path(work, f"model{seed}")))
        models = Models(serve_all("--model", f"live={paths[0]}"), Swap(*paths))
        yield models
        models.client.close()


@pytest.fixture(scope="module", autouse=True)
def few_prefixes() -> Iterator[None]:
    """All words in three requests, between which a model may be replaced, and not in 252."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_snapshot, "_BYTES", [b"w0", b"w1", b"w2"])
        yield


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Ask]:
    return all_calls(tmp_path_factory.mktemp("calls"))


def answers_of_both(models: Models, call: Ask) -> Tuple[List[Any], int]:
    """The results of the call for each model, and how many requests it takes."""
    found = []
    sent = 0
    for _ in range(2):
        client = models.swapping(at=0)
        found.append(plain(call(client, KeyedVectors(client))))
        sent = max(sent, client.sent)
        models.swap()
    return found, sent


def places(sent: int) -> List[int]:
    """Numbers of requests to swap before: the first ones, the last ones, and one between."""
    if sent <= 8:
        return list(range(1, sent + 1))
    return [1, 2, sent // 2, sent - 1, sent]


def names() -> List[str]:
    with tempfile.TemporaryDirectory() as folder:
        return list(all_calls(Path(folder)))


@pytest.mark.parametrize("name", names())
def test_no_result_is_of_two_models(models: Models, calls: Dict[str, Ask], name: str) -> None:
    call = calls[name]
    right, sent = answers_of_both(models, call)
    for at in places(sent):
        client = models.swapping(at)
        assert result(call, client, KeyedVectors(client), right) in right, at
    # All words were read a moment ago, so they count as the daemon's.
    for at in range(1, min(sent, 2) + 1):
        client = models.swapping(0)
        vectors = KeyedVectors(client)
        vectors.index_to_key
        client.at = client.sent + at
        assert result(call, client, vectors, right) in right, at


def result(call: Ask, client: Swapping, vectors: KeyedVectors, right: List[Any]) -> Any:
    """The result of the call. An iterator that has given answers can only end with an error."""
    found = call(client, vectors)
    if not hasattr(found, "__next__"):
        return plain(found)
    begun: List[Any] = []
    try:
        begun.extend(found)
    except gloved.ModelReplaced:
        return next((each for each in right if each[: len(begun)] == plain(begun)), begun)
    return plain(begun)


def test_the_call_ends_with_an_error_if_the_model_never_stays(models: Models) -> None:
    class Storm(Swapping):
        def ask(self, request: Request[Any]) -> Any:
            models.swap()
            return super().ask(request)

    client = Storm(models.client, models.swap, 0)
    vectors = KeyedVectors(client)
    words = [f"w{number:03}" for number in range(300)]
    for call in (
        lambda: vectors.get_vectors(words),
        lambda: vectors[words],
        lambda: vectors.get_mean_vector(words),
        lambda: vectors.closer_than("w001", "w002"),
        lambda: vectors.relative_cosine_similarity("w001", "w002"),
    ):
        with pytest.raises(gloved.ModelReplaced, match="ask again") as raised:
            call()
        assert isinstance(raised.value, gloved.Unavailable)
    # What one request answers needs no other.
    assert isinstance(vectors.similarity("w001", "w002"), float)


def test_many_answers_end_when_the_model_is_replaced(models: Models) -> None:
    client = models.swapping(at=6)
    vectors = KeyedVectors(client)
    found = []
    with pytest.raises(gloved.ModelReplaced):
        for near in vectors.most_similar_many([f"w{number:03}" for number in range(9)], topn=1):
            found.append(near)
    assert len(found) >= 3


def test_an_error_of_the_next_model_is_not_the_calls(
    serve: Callable[..., Daemon], convert: Callable[[Path, Path], Path], tmp_path: Path
) -> None:
    """A word that only the first model has; the second gives the error."""
    paths = []
    for number, words in enumerate((["a", "b", "gone"], ["a", "b", "new"])):
        text = tmp_path / f"text{number}"
        text.write_text("".join(f"{word} {place} 1 {number}\n" for place, word in enumerate(words)))
        paths.append(convert(text, tmp_path / f"model{number}"))
    models = Models(serve("--model", str(paths[0])), Swap(*paths))
    # HAS knows the word, and then the other model does not.
    vectors = KeyedVectors(models.swapping(at=2))
    found = vectors.get_vectors(["a", "gone"], ignore_missing=True)
    assert [list(row) for row in found] == [[0, 1, 1], [0, 0, 0]]
    models.client.close()


def test_a_storm_of_reloads() -> None:
    """The short form of a program that runs as long as one likes."""
    done = subprocess.run(
        [
            sys.executable,
            str(REPOSITORY / "tests" / "scale" / "python_reloads.py"),
            os.environ.get("GLOVED_BIN", str(REPOSITORY / "build" / "dev" / "bin")),
            "--seconds", "1",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout.decode()
