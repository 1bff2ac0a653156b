"""The protocol without sockets: quoting, requests and replies."""

from __future__ import annotations

import json
import math
import random
from typing import Any, Optional

import pytest

import gloved
from gloved import requests
from gloved._wire import MAX_LINE_BYTES, Conversation, Request, parse_reply

SETUP = b'{"ok":true,"verb":"FORMAT","results":[]}\n'
PING = b'{"ok":true,"verb":"PING","results":[]}\n'
HEAD = '"us":1,"rows":9,"model":"m","generation":"g"'


def reply(**members: Any) -> bytes:
    """A line of JSON that escapes words as the daemon does."""
    return json.dumps({"ok": True, **members}).encode() + b"\n"


def sim_reply(score: float) -> bytes:
    return reply(verb="SIM", results=[{"score": score}])


def ready(model: Optional[str] = None) -> Conversation:
    """A conversation whose connection is set up."""
    conversation = Conversation(model)
    assert conversation.receive(SETUP * (2 if model else 1)) == []
    conversation.outgoing.clear()
    return conversation


def test_a_request_has_at_most_65536_bytes() -> None:
    room = MAX_LINE_BYTES - len(b'HAS ""')
    assert len(requests.has(["a" * room]).line) == MAX_LINE_BYTES
    with pytest.raises(gloved.TooLong):
        requests.has(["a" * (room + 1)])


def test_a_request_is_one_line() -> None:
    for end in "\n", "\r", "\0":
        with pytest.raises(ValueError, match="a request must not have LF, CR or NUL"):
            Request(f"PING{end}".encode(), str)


def test_setup_comes_before_requests() -> None:
    conversation = Conversation("my model")
    conversation.ask(requests.ping())
    assert bytes(conversation.outgoing) == b'FORMAT json\nUSE "my model"\nPING\n'
    assert conversation.receive(SETUP + SETUP) == []
    assert [outcome for _, outcome in conversation.receive(PING)] == [None]
    assert conversation.can_be_kept()


def test_replies_split_at_every_byte() -> None:
    scores = [0.25, -1.0, 0.5]
    stream = SETUP + b"".join(map(sim_reply, scores))
    stream += b'{"ok":false,"code":"unknown_word","message":"m","word":"x","suggestions":["y"]}\n'
    for cut in range(len(stream) + 1):
        conversation = Conversation(None)
        asked = [requests.sim("a", str(i)) for i in range(4)]
        for request in asked:
            conversation.ask(request)
        answers = conversation.receive(stream[:cut]) + conversation.receive(stream[cut:])
        assert [request for request, _ in answers] == asked
        assert [outcome for _, outcome in answers[:3]] == scores
        error = answers[3][1]
        assert isinstance(error, gloved.UnknownWord)
        assert (error.word, error.suggestions) == ("x", ["y"])
        assert conversation.can_be_kept()


def test_replies_byte_by_byte() -> None:
    conversation = ready()
    conversation.ask(requests.sim("a", "b"))
    answers = []
    for byte in sim_reply(0.125):
        answers += conversation.receive(bytes([byte]))
    assert [outcome for _, outcome in answers] == [0.125]


class Unsearched(bytearray):
    """Bytes that nobody may look through."""

    def __getitem__(self, at: Any) -> Any:
        assert len(range(*at.indices(len(self)))) <= 80
        return super().__getitem__(at)

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError("what came before is searched again")

    find = rfind = index = partition = rpartition = split = count = __contains__ = _refuse


def test_of_a_long_reply_only_new_bytes_are_searched() -> None:
    conversation = ready()
    conversation.ask(Request(b"PING", lambda answer: answer["results"]))
    conversation._incoming = Unsearched()
    conversation.receive(b'{"ok":true,"results":[{"scores":[')
    piece = b"0.1234567," * 6_554
    for _ in range(40):
        assert conversation.receive(piece) == []
    ((_, outcome),) = conversation.receive(b"1]}]}\n")
    assert isinstance(outcome, list)
    assert len(outcome[0]["scores"]) == 40 * 6_554 + 1


@pytest.mark.parametrize(
    "shown, word",
    [
        (r"caf\udbff\udfe9", "caf\udce9"),
        (r"caf\u00e9", "café"),
        (r"\udbff\udfc3\udbff\udfa9", "é"),
        (r"\udbff\udff4\udbff\udf8f\udbff\udfbe\udbff\udf80", "\U0010ff80"),
        (r"\u0000\u001f\u007f\u009f", "\0\x1f\x7f\x9f"),
        (r"\"\\ ", '"\\ '),
    ],
)
def test_words_of_replies(shown: str, word: str) -> None:
    line = '{"ok":true,%s,"results":[{"word":"%s","score":1}]}\n' % (HEAD, shown)
    conversation = ready()
    conversation.ask(requests.near("a"))
    ((_, answer),) = conversation.receive(line.encode())
    assert answer == [gloved.Neighbor(word, 1.0)]
    assert isinstance(answer, gloved.Answer)
    assert isinstance(answer[0].score, float)


def test_members_of_a_later_daemon_are_ignored() -> None:
    conversation = ready()
    conversation.ask(requests.near("a"))
    conversation.ask(requests.has(["a"]))
    conversation.ask(requests.models())
    word = '{"word":"a","score":0.5,"row":3,"known":true,"weight":7}'
    model = '{"model":"m","rows":9,"dim":2,"generation":"g","engine":"cpu","age":1}'
    head = HEAD + ',"later":[]'
    line = '{"ok":true,%s,"results":[%s]}\n'
    answers = conversation.receive((line % (head, word) * 2 + line % (head, model)).encode())
    assert [outcome for _, outcome in answers] == [
        [gloved.Neighbor("a", 0.5, row=3)],
        [gloved.Word("a", True, row=3)],
        [gloved.Model("m", 9, 2, "g", "cpu")],
    ]


def test_null_is_not_a_number() -> None:
    conversation = ready()
    conversation.ask(requests.sim("a", "b"))
    conversation.ask(requests.matrix(["a", "b"]))
    (_, score), (_, matrix) = conversation.receive(
        reply(results=[{"score": None}])
        + reply(results=[{"scores": [None, 1]}, {"scores": [1, 1]}])
    )
    assert isinstance(score, float) and math.isnan(score)
    assert isinstance(matrix, list) and math.isnan(matrix[0][0]) and matrix[0][1] == 1.0


def test_a_reply_that_cannot_be_read_fails_its_request_alone() -> None:
    conversation = ready()
    for _ in range(3):
        conversation.ask(requests.sim("a", "b"))
    stream = sim_reply(0.5) + b'{"ok":true,"results":[]}\n' + sim_reply(0.25)
    first, second, third = (outcome for _, outcome in conversation.receive(stream))
    assert (first, third) == (0.5, 0.25)
    assert isinstance(second, gloved.Internal)
    assert isinstance(second.__cause__, ValueError)
    assert conversation.can_be_kept()


def test_busy_instead_of_setup() -> None:
    conversation = Conversation(None)
    conversation.ask(requests.ping())
    assert conversation.receive(b"ERR busy 10000 connections are open\n") == []
    assert isinstance(conversation.ended, gloved.Busy)
    assert str(conversation.ended) == "10000 connections are open"
    assert conversation.nothing_read
    assert len(conversation.unanswered) == 1


def test_busy_request() -> None:
    conversation = ready()
    conversation.ask(requests.ping())
    ((_, outcome),) = conversation.receive(b'{"ok":false,"code":"busy","message":"m"}\n')
    assert isinstance(outcome, gloved.Busy)
    assert conversation.ended is None
    assert conversation.can_be_kept()


def test_idle_answers_no_request() -> None:
    conversation = ready()
    first, second = requests.ping(), requests.reload()
    conversation.ask(first)
    conversation.ask(second)
    answers = conversation.receive(PING + b'{"ok":false,"code":"idle","message":"m"}\n')
    assert answers == [(first, None)]
    assert isinstance(conversation.ended, gloved.Idle)
    assert conversation.nothing_read
    assert list(conversation.unanswered) == [second]
    assert not conversation.can_be_kept()


def test_an_unknown_model_ends_the_conversation() -> None:
    conversation = Conversation("other")
    conversation.ask(requests.sim("a", "b"))
    answers = conversation.receive(
        SETUP + b'{"ok":false,"code":"unknown_model","message":"no"}\n' + sim_reply(0.5)
    )
    # The answer is another model's.
    assert answers == []
    assert isinstance(conversation.ended, gloved.UnknownModel)
    assert not conversation.nothing_read


def test_errors_have_their_class_and_code() -> None:
    codes = {
        "bad_request": gloved.BadRequest,
        "unknown_word": gloved.UnknownWord,
        "unknown_model": gloved.UnknownModel,
        "unknown_list": gloved.UnknownList,
        "zero_vector": gloved.ZeroVector,
        "too_long": gloved.TooLong,
        "forbidden": gloved.Forbidden,
        "busy": gloved.Busy,
        "timeout": gloved.Timeout,
        "unavailable": gloved.Unavailable,
        "internal": gloved.Internal,
        "of_tomorrow": gloved.GlovedError,
    }
    for code, kind in codes.items():
        conversation = ready()
        conversation.ask(requests.ping())
        line = json.dumps({"ok": False, "code": code, "message": "it says why"}).encode()
        ((_, outcome),) = conversation.receive(line + b"\n")
        assert type(outcome) is kind and isinstance(outcome, gloved.GlovedError)
        assert (outcome.code, str(outcome)) == (code, "it says why")


STRANGERS = [
    b"HTTP/1.1 400 Bad Request\r\n",
    b"SSH-2.0-OpenSSH_9.2",
    b"\0\0\0\0",
    b"\xff\xfe\n",
    b"ERRATIC",
    b"\n",
    b"[]\n",
    b"{}\n",
    b"{\n",
    b"{\0\n",
    b'{"ok":' + b"[" * 100_000 + b"\n",
    b'{"ok":false,"code":"unknown_word","suggestions":7}\n',
    b"null\n",
]


@pytest.mark.parametrize("data", STRANGERS, ids=lambda data: repr(data[:20]))
@pytest.mark.parametrize("is_set_up", [False, True])
def test_strangers_are_told_from_gloved(data: bytes, is_set_up: bool) -> None:
    conversation = ready() if is_set_up else Conversation(None)
    conversation.ask(requests.ping())
    assert conversation.receive(data) == []
    assert type(conversation.ended) is gloved.GlovedError
    assert "not gloved" in str(conversation.ended)
    assert not conversation.nothing_read


def test_answers_before_a_wrong_line_count() -> None:
    conversation = ready()
    asked = [requests.sim("a", "b"), requests.sim("a", "c")]
    for request in asked:
        conversation.ask(request)
    assert conversation.receive(sim_reply(0.5) + b"?\n" + sim_reply(1)) == [(asked[0], 0.5)]
    assert conversation.ended is not None
    assert list(conversation.unanswered) == asked[1:]


def test_a_reply_that_nothing_asked_for() -> None:
    conversation = ready()
    assert conversation.receive(PING) == []
    assert "nothing was asked" in str(conversation.ended)
    conversation = ready()
    conversation.receive(b'{"ok":false,"code":"unavailable","message":"no engine"}\n')
    assert isinstance(conversation.ended, gloved.Unavailable)


def test_half_a_line_is_not_kept() -> None:
    conversation = ready()
    conversation.receive(b'{"ok":fal')
    assert not conversation.can_be_kept()


def test_random_bytes_never_raise() -> None:
    pick = random.Random(3)
    pieces = [SETUP, PING, sim_reply(1), b"ERR busy x\n", b'{"ok":false}\n', b"{", b"\n", b"ERR"]
    for _ in range(2_000):
        conversation = Conversation(None)
        for _ in range(3):
            conversation.ask(requests.sim("a", "b"))
        for _ in range(pick.randint(1, 6)):
            data = pick.choice(pieces)
            if pick.random() < 0.3:
                data = bytes(pick.choices(range(256), k=9))
            conversation.receive(data)
        assert len(conversation.unanswered) <= 3


def test_parse_reply_of_text() -> None:
    assert parse_reply(b"ERR busy too many") == {
        "ok": False, "code": "busy", "message": "too many"
    }
    assert parse_reply(b"ERR busy") == {"ok": False, "code": "busy", "message": ""}
