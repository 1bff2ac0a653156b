"""Replies in which one member is wrong: a call has a result, or an error of gloved's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

import pytest
from calls import Ask, all_calls, plain, text_of_model
from conftest import Daemon

import gloved
from gloved import KeyedVectors, _snapshot
from gloved_explore.word_map import _neighbors, _read, _tell_searches
from gloved._one_model import OneModel
from gloved._wire import Conversation, Request

WRONG = ["x", "", "\ud800", None, -1, 0.5, 2**31, 2**32 - 1, 2**70, 10**30, True, [7], {}]
USED_OF_STATS = ("max_k", "neighbors_k", "results", "ok")
Members = Dict[str, Any]
Member = Tuple[str, str]
"""A verb, and a member of its reply or of each of its results."""


class Lying(gloved.Client):
    """A client that hears what a daemon said once to each request, with a wrong value of a member.

    told  every member that it has heard, and that somebody may use
    """

    def __init__(self, daemon: gloved.Client) -> None:
        super().__init__("/nowhere")
        self.told: List[Member] = []
        self.lie: Member = ("", "")
        self.value: Any = None
        self._daemon = daemon
        self._replies: Dict[bytes, Members] = {}

    def _reply(self, line: bytes) -> Members:
        if line not in self._replies:
            try:
                reply = self._daemon.ask(Request(line, dict))
            except gloved.GlovedError as error:
                reply = {**vars(error), "ok": False, "code": error.code}
            reply.pop("audit", None)
            self._replies[line] = reply
        return self._replies[line]

    def _with_lie(self, line: bytes) -> bytes:
        reply = dict(self._reply(line))
        verb = line.split()[0].decode()
        reply["results"] = [dict(each) for each in reply.get("results", [])]
        for members in (reply, *reply["results"]):
            self.told += [
                (verb, name) for name in members
                if (verb, name) not in self.told and (verb != "STATS" or name in USED_OF_STATS)
            ]
            if verb == self.lie[0] and self.lie[1] in members:
                members[self.lie[1]] = self.value
        return json.dumps(reply).encode() + b"\n"

    def ask_all(
        self,
        asked: Iterable[Request[Any]],
        *,
        return_exceptions: bool = False,
        ahead: int = 256,
    ) -> Iterator[Any]:
        for request in asked:
            conversation = Conversation(None)
            conversation.receive(b'{"ok":true,"results":[]}\n')
            conversation.ask(request)
            answers = conversation.receive(self._with_lie(request.line))
            outcome = answers[0][1] if answers else conversation.ended
            if isinstance(outcome, gloved.GlovedError) and not return_exceptions:
                raise outcome
            yield outcome


def ask_map(client: gloved.Client, vectors: KeyedVectors) -> None:
    class Options:
        model, top, k = None, None, 3

    _tell_searches(client, Options)  # type: ignore[arg-type]
    one_model = OneModel(client)
    snapshot, count, _ = _read(client, one_model, None)
    _neighbors(one_model, snapshot, count, 3)


def ask_plainly(client: gloved.Client, vectors: KeyedVectors) -> None:
    """What no call of several requests asks."""
    for ask in (
        client.lists, client.models, client.help, client.prometheus, client.stats,
        lambda: client.matrix(["w001", "w002"]),
        lambda: client.dist("w001", "w002"),
        lambda: client.near("W001 w002", certify=True, fields="row,rank,norm", case="ignore"),
        lambda: client.near(["w001", "no"], unknown="skip"),
        lambda: client.vec(["w001", "no"], unknown="skip"),
    ):
        try:
            ask()
        except gloved.GlovedError:
            pass


@pytest.fixture(scope="module")
def lying(
    serve_all: Callable[..., Daemon],
    convert: Callable[[Path, Path], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lying]:
    work = tmp_path_factory.mktemp("lies")
    (work / "text").write_bytes(text_of_model(1))
    daemon = serve_all("--model", str(convert(work / "text", work / "model")))
    with gloved.Client(daemon.socket) as client:
        yield Lying(client)


def outcome(call: Ask, client: Lying) -> Any:
    """The result of the call, or its error: if it is no error of gloved's, the test fails."""
    try:
        return plain(call(client, KeyedVectors(client)))
    except gloved.GlovedError as error:
        return error


def test_a_wrong_member_is_an_error_of_gloved(
    lying: Lying, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All words begin with it: one request for all, and not 252.
    monkeypatch.setattr(_snapshot, "_BYTES", [b"w"])
    calls: Dict[str, Ask] = {**all_calls(tmp_path), "map": ask_map, "plainly": ask_plainly}
    # Of 7,475 words, whose replies get_mean_vector and similar_by_vector hear too.
    del calls["most_similar 3"]
    pick = random.Random(11)
    refused = 0
    for name, call in calls.items():
        lying.told.clear()
        lying.lie = ("", "")
        assert not isinstance(outcome(call, lying), gloved.GlovedError), name
        for lie in list(lying.told):
            for lying.value in pick.sample(WRONG, 2):
                lying.lie = lie
                try:
                    refused += isinstance(outcome(call, lying), gloved.GlovedError)
                except Exception as error:
                    pytest.fail(f"{name}: {lie} is {lying.value!r}: {error!r}")
    assert refused > 300
