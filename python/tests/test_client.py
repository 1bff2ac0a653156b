"""Client against a daemon: verbs, pipelines, restarts, and how a program ends."""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import conftest
import fake
import pytest
from fake import serving

import gloved
from gloved import requests


def words_of(client: gloved.Client, count: int) -> List[str]:
    return [word.word for letter in "st" for word in client.prefix(letter, k=count // 2)]


def connections(client: gloved.Client) -> int:
    """How many were opened at the daemon so far, its own included."""
    return int(client.stats()["connections_total"])


def test_groups_of_words(client: gloved.Client) -> None:
    queen = client.near([("king", 1), ("man", -1), "woman"], k=1)[0]
    royal = gloved.Expression("king - man + woman")
    for group in (royal, ["king", ("man", -1), "woman"]):
        assert client.sim(group, "queen") == queen.score
        assert client.rank(group, "queen") == 1
    pairs = ["king", "queen"], ["man", "woman"]
    assert client.sim(*pairs) == pytest.approx(0.518263, abs=1e-6)
    assert client.sim(*pairs, norm="unit") == pytest.approx(0.519559, abs=1e-6)
    assert client.dist(*pairs) == pytest.approx(30.242535, abs=1e-5)
    assert client.dist("king", ["king"], norm="unit") == 0
    assert client.rank("snake", ["fish"]) == client.rank("snake", "fish", norm="unit") == 3
    odd = client.odd([["breakfast", "lunch"], "dinner", ["piano", "guitar"]], norm="raw")
    assert odd.word == '( "piano" + "guitar" )'
    # Words that are parentheses are quoted.
    with pytest.raises(gloved.UnknownWord):
        client.sim("( king )", "queen")
    assert client.sim("(", "(") == pytest.approx(1)
    for asked in (lambda: client.sim([], "king"), lambda: client.odd([])):
        with pytest.raises(ValueError):
            asked()
    with pytest.raises(TypeError):
        client.odd("king")
    with pytest.raises(gloved.BadRequest):
        client.sim("king", "queen", norm="l2")


def test_each_verb(client: gloved.Client) -> None:
    near = client.near("snake", k=3, fields=("rank", "row", "norm"))
    assert [each.word for each in near] == ["dragon", "cat", "fish"]
    assert near[0].rank == 6967 and near[0].row == 2770
    assert near[0].norm == pytest.approx(5.374374, abs=1e-6)
    assert near.info.model == "model" and near.info.rows == 10002 and near.info.engine == "cpu"
    assert client.near([("king", 1), ("man", -1), "woman"])[0].word == "queen"
    assert client.near(gloved.Expression("2 * paris - ( france - germany )"))[0].word == "berlin"
    assert near.info.certificate is None and near.info.audit is None
    certified = client.near("king", certify=True).info
    assert certified.certificate is not None and certified.certificate["scanned"] > 0
    assert certified.audit is not None and b"\n" not in certified.audit
    assert json.loads(certified.audit)["request"].endswith('case=exact "king"')
    assert [each.word for each in client.analogy("man", "king", "woman", k=2)] == [
        "queen", "monarch"
    ]
    assert client.rank("snake", "fish") == 3
    assert client.sim("king", "queen") == pytest.approx(0.750769, abs=1e-6)
    assert client.dist("king", "queen") == pytest.approx(18.32912, abs=1e-5)
    assert client.odd(["breakfast", "piano", "dinner", "lunch"]).word == "piano"
    assert client.matrix(["king", "queen"])[0][1] == client.sim("king", "queen")
    assert client.matrix(["king", "queen"], metric="sqeuclidean")[1] == [
        client.dist("queen", "king"), 0.0
    ]
    vectors = client.vec(["snake", "king"])
    assert len(vectors) == 2 and len(vectors[0]) == 100
    assert client.near_vector(vectors[0], k=1)[0].word == "snake"
    assert client.near_vector(list(map(float, vectors[0])), k=2)[1].word == "dragon"
    assert [each.word for each in client.prefix("king", k=2)] == ["king", "kingdom"]
    assert [each.known for each in client.has(["king", "King", "caf\udce9", '"', "a\tb"])] == [
        True, False, False, True, False
    ]
    assert client.models()[0].dim == 100
    assert client.reload()[0].model == "model"
    assert client.stats()["health"] == "serving"
    assert "gloved_build_info" in client.prometheus()
    client.ping()
    assert any("NEAR" in line for line in client.help())


def test_lists(client: gloved.Client) -> None:
    animals, pets = client.lists()
    assert (animals.list, animals.words, animals.missing) == ("animals", 13, 2)
    assert (pets.list, pets.words, pets.missing) == ("pets", 3, 0)
    assert len(pets.checksum) == 16 and pets.checksum != animals.checksum
    assert (pets.origin, pets.replaced) == ("file", 0)
    near = client.near("snake", within="animals", k=2)
    assert [each.word for each in near] == ["cat", "fish"]
    assert client.near("snake", within=("animals", "pets"), without=["pets"]) == []
    assert client.near("snake", without=["animals"], k=1)[0].word == "dragon"
    vector = client.vec(["snake"])[0]
    assert client.near_vector(vector, within="animals", k=2)[1].word == "cat"
    assert client.analogy("bird", "fish", "cat", within=["animals"], k=1)[0].word == "dog"
    assert client.rank("snake", "fish", within="animals") == 2
    ranked = client.ranked("snake", "fish", within="animals", without="pets")
    assert ranked == (1, pytest.approx(0.60723, abs=1e-6), False)
    assert client.ranked("snake", "fish", within="animals") == (2, ranked.score, True)
    assert client.ranked("snake", ["fish", "cat"]).eligible is False
    has = client.has(["fish", "king", "qwfp"], within="animals")
    assert [(each.known, each.within) for each in has] == [
        (True, True), (True, False), (False, False)
    ]
    assert [each.within for each in client.has(["dog", "fish"], within=["animals", "pets"])] == [
        True, True
    ]
    assert client.has(["fish"])[0].within is None
    assert client.rank("snake", "fish", without="animals") == 2
    assert [each.word for each in client.prefix("s", within="animals", without="pets")] == [
        "sheep", "snake", "shark"
    ]
    with pytest.raises(gloved.UnknownList, match='no list "birds" of this model'):
        client.near("snake", within="birds")


def test_only(client: gloved.Client) -> None:
    words = ["fish", "king", "cat", "king", "snake"]
    near = client.near("snake", only=words)
    assert [each.word for each in near] == ["cat", "fish", "king"]
    assert near == [each for each in client.near("snake", k=10001) if each.word in words]
    assert near.info.engine is None
    assert client.near("snake", only=iter(words), k=1, exclude="none")[0].word == "snake"
    chosen = client.analogy("man", "king", "woman", only=["monarch", "queen"], method="mul")
    assert [each.word for each in chosen] == ["queen", "monarch"]
    skipped = client.near("snake", only=["King", "k=1", "-"], unknown="skip", case="ignore")
    assert [each.word for each in skipped] == ["king", "-"]
    assert skipped.info.skipped == ("k=1",) and skipped.info.replaced == {"King": "king"}
    audited = client.near("snake", only=words, certify=True)
    assert audited == near
    assert audited.info.certificate and audited.info.certificate["rescored"] == 3
    with pytest.raises(gloved.UnknownWord) as missing:
        client.near("snake", only=["cat", "qwfp"])
    assert missing.value.word == "qwfp"
    with pytest.raises(ValueError, match="only: the list of words is empty"):
        client.near("snake", only=[])
    with pytest.raises(TypeError, match="only is a list of words, not one str"):
        client.near("snake", only="cat")
    with pytest.raises(gloved.BadRequest, match="engine="):
        client.near("snake", only=["cat"], engine="cpu")


def test_look_ups(client: gloved.Client) -> None:
    near = client.near(["King", "no word"], unknown="skip", case="ignore", k=2)
    assert near == client.near("king", k=2)
    assert list(near.info.skipped) == ["no word"]
    assert near.info.replaced == {"King": "king"}
    strict = client.near("king", unknown="error", case="exact", k=2)
    assert (list(strict.info.skipped), strict.info.replaced) == ([], {})
    assert client.analogy("MAN", "king", "woman", case="ignore", k=1)[0].word == "queen"
    assert client.rank(["snake", "qwfp"], "FISH", unknown="skip", case="ignore") == 3
    similar = client.sim("king", "queen")
    assert client.sim(["king", "qwfp"], "Queen", unknown="skip", case="ignore") == similar
    distant = client.dist("king", "queen")
    assert client.dist(["king", "qwfp"], "Queen", unknown="skip", case="ignore") == distant
    odd = client.odd(["Breakfast", "piano", "lunch", "qwfp"], unknown="skip", case="ignore")
    assert odd.word == "piano"
    assert client.matrix(["King", "qwfp"], unknown="skip", case="ignore")[0] == [pytest.approx(1)]
    assert len(client.vec(["King", "qwfp"], unknown="skip", case="ignore")) == 1
    has = client.has(["King", "qwfp"], case="ignore")
    assert [each.known for each in has] == [True, False]
    assert has.info.replaced == {"King": "king"}
    for refused in (
        lambda: client.near("King", case="exact"),
        lambda: client.sim("king", "qwfp", unknown="skip"),
        lambda: client.vec(["qwfp"], unknown="skip"),
    ):
        with pytest.raises(gloved.UnknownWord):
            refused()


def test_errors_of_the_daemon(client: gloved.Client) -> None:
    with pytest.raises(gloved.UnknownWord, match='"Kingg" is not in the model') as raised:
        client.near("Kingg")
    assert raised.value.word == "Kingg"
    assert isinstance(raised.value, KeyError)
    with pytest.raises(gloved.ZeroVector):
        client.near([("king", 1), ("king", -1)])
    with pytest.raises(gloved.BadRequest):
        client.near("king", k=0)
    with pytest.raises(gloved.BadRequest):
        client.near_vector([1.0, 2.0])
    with pytest.raises(gloved.UnknownModel):
        client.sim("king", "queen", model="other")
    with pytest.raises(gloved.TooLong):
        client.has(["king"] * 10_000)


def test_a_client_of_an_unknown_model(daemon: conftest.Daemon) -> None:
    with gloved.Client(daemon.socket, model="other") as client:
        with pytest.raises(gloved.UnknownModel, match="other"):
            client.sim("king", "queen")
    with gloved.Client(daemon.socket, model="model") as client:
        assert client.sim("king", "king") == 1


def test_calls_keep_their_connection(client: gloved.Client) -> None:
    begun = connections(client)
    for _ in range(20):
        client.sim("king", "queen")
        with pytest.raises(gloved.UnknownWord):
            client.near("Kingg")
        next(client.ask_all([requests.ping()]))
    assert connections(client) == begun


def test_large_answers(client: gloved.Client) -> None:
    words = words_of(client, 1_000)
    assert len(words) == 1_000
    nearest = client.near("king", k=65_536)
    assert len(nearest) == 10_001
    scores = [each.score for each in nearest]
    assert scores == sorted(scores, reverse=True)
    matrix = client.matrix(words)
    assert len(matrix) == 1_000 and {len(row) for row in matrix} == {1_000}
    assert matrix[3][700] == client.sim(words[3], words[700])


def test_pipeline(client: gloved.Client) -> None:
    words = words_of(client, 200) * 5
    taken = 0

    def asked() -> Iterator[requests.Request[float]]:
        nonlocal taken
        for word in words:
            taken += 1
            yield requests.sim("king", word)

    expected = {word: client.sim("king", word) for word in set(words)}
    begun = connections(client)
    for number, answer in enumerate(client.ask_all(asked())):
        assert answer == expected[words[number]]
        # 256 unanswered, and answers that came in the same read.
        assert taken <= number + 1 + 2 * 256
    assert number == len(words) - 1
    assert connections(client) == begun
    assert list(client.ask_all([])) == []
    with pytest.raises(ValueError):
        list(client.ask_all([requests.ping()], ahead=0))


def test_pipeline_of_long_requests_and_answers(client: gloved.Client) -> None:
    """Neither side may wait for the other to read first: each way carries several MiB."""
    words = words_of(client, 400)
    vectors = client.vec(words[:40])
    asked: List[requests.Request[Any]] = []
    for vector in vectors:
        asked += [requests.has(words * 14), requests.near_vector(vector, k=2_000)]
    answers = list(client.ask_all(asked))
    assert [len(answer) for answer in answers] == [5_600, 2_000] * len(vectors)


def test_errors_within_a_pipeline(client: gloved.Client) -> None:
    asked = [requests.sim("king", word) for word in ("queen", "Kingg", "man")]
    first, second, third = client.ask_all(asked, return_exceptions=True)
    assert isinstance(second, gloved.UnknownWord)
    assert (first, third) == (client.sim("king", "queen"), client.sim("king", "man"))
    answers = client.ask_all(asked)
    assert next(answers) == first
    with pytest.raises(gloved.UnknownWord):
        next(answers)
    assert list(answers) == []


def test_an_abandoned_pipeline_leaves_nothing_behind(client: gloved.Client) -> None:
    for count in (1, 300):
        answers = client.ask_all(requests.near("king", k=1_000) for _ in range(count))
        next(answers)
        del answers
    answers = client.ask_all(requests.near("king", k=1_000) for _ in range(300))
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    gc.collect()
    assert client.sim("king", "king") == 1
    assert not client._pool._taken


def test_a_closed_client(daemon: conftest.Daemon) -> None:
    client = gloved.Client(daemon.socket)
    answers = client.ask_all(requests.sim("king", "queen") for _ in range(600))
    first = next(answers)
    client.close()
    # What has begun may end.
    assert set(answers) == {first}
    with pytest.raises(ValueError, match="the client is closed"):
        client.ping()
    assert not client._pool._idle
    client.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_ends_amid_a_pipeline(
    daemon: conftest.Daemon, client: gloved.Client, number: signal.Signals
) -> None:
    words = words_of(client, 400) * 5
    expected = {word: client.near(word, k=5) for word in set(words)}

    def restart() -> None:
        daemon.stop(number)
        daemon.start()

    restarting = threading.Thread(target=restart)
    for index, answer in enumerate(client.ask_all(requests.near(word, k=5) for word in words)):
        if index == 100:
            restarting.start()
        assert answer == expected[words[index]]
    restarting.join()
    assert index == len(words) - 1


def test_a_daemon_that_is_away(daemon: conftest.Daemon) -> None:
    with gloved.Client(daemon.socket, retries=2) as client:
        client.ping()
        daemon.stop()
        with pytest.raises(gloved.ConnectionFailed, match="no gloved daemon answers"):
            client.ping()
        daemon.start()
        client.ping()


def test_an_idle_connection_ends(serve: Callable[..., conftest.Daemon], model_dir: Path) -> None:
    daemon = serve("--model", str(model_dir), "--idle-timeout", "0.3")
    with gloved.Client(daemon.socket) as client:
        client.ping()
        answers = client.ask_all(requests.ping() for _ in range(300))
        next(answers)
        time.sleep(0.8)
        assert list(answers) == [None] * 299
        assert client.reload()


def test_refused_connections(serve: Callable[..., conftest.Daemon], model_dir: Path) -> None:
    daemon = serve("--model", str(model_dir), "--max-connections", "2", "--uid-share", "100")
    with gloved.Client(daemon.socket, retries=1) as client, socket.socket(
        socket.AF_UNIX
    ) as first, socket.socket(socket.AF_UNIX) as second:
        first.connect(daemon.socket)
        second.connect(daemon.socket)
        for each in (first, second):
            each.sendall(b"PING\n")
            each.recv(100)
        with pytest.raises(gloved.Busy):
            client.ping()
        second.close()
        with gloved.Client(daemon.socket) as patient:
            patient.ping()


def test_reload_while_in_use(
    serve: Callable[..., conftest.Daemon], own_model_dir: Path
) -> None:
    daemon = serve("--model", str(own_model_dir))
    with gloved.Client(daemon.socket) as client:
        expected = client.near("king")
        stop = threading.Event()
        faults: List[object] = []

        def ask() -> None:
            while not stop.is_set():
                answers = client.ask_all(requests.near("king") for _ in range(300))
                faults.extend(answer for answer in answers if answer != expected)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            assert len(client.reload()) == 1
        answers = client.ask_all([requests.near("king"), requests.reload(), requests.near("king")])
        assert [len(answer) for answer in answers] == [10, 1, 10]
        stop.set()
        for thread in threads:
            thread.join()
        assert not faults


def test_signals_do_not_disturb_calls(client: gloved.Client) -> None:
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1

    before = signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        expected = client.near("king")
        for answer in client.ask_all(requests.near("king") for _ in range(2_000)):
            assert answer == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen > 10


def test_an_interrupt_ends_a_call(client: gloved.Client) -> None:
    class Interrupt(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with serving(fake.Peer.ignore) as server:
            with gloved.Client(server.socket) as waiting, pytest.raises(Interrupt):
                waiting.ping()
            assert not waiting._pool._taken
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    client.ping()


def test_where_the_socket_is(
    daemon: conftest.Daemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GLOVED_SOCKET", daemon.socket)
    with gloved.Client() as client:
        client.ping()
    monkeypatch.delenv("GLOVED_SOCKET")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(Path(daemon.socket).parent))
    with gloved.Client() as client:
        client.ping()
    with gloved.Client(Path(daemon.socket)) as client:
        client.ping()
    # Who names a daemon does not want another one's answers.
    monkeypatch.setenv("GLOVED_SOCKET", str(tmp_path / "absent"))
    with gloved.Client(retries=0) as client, pytest.raises(gloved.ConnectionFailed):
        client.ping()


def test_an_answers_info_can_be_hashed(client: gloved.Client) -> None:
    infos = [client.near("king", certify=certify).info for certify in (True, False)]
    assert infos[0].certificate is not None
    assert len({*infos, *infos}) == 2


def test_sigpipe_does_not_end_the_program(daemon: conftest.Daemon) -> None:
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        with serving(lambda peer: None, fake.Peer.serve) as server:
            with gloved.Client(server.socket) as client:
                place = client._pool.take(1)
                connection = place.connection
                assert connection is not None
                time.sleep(0.1)
                client._pool.put(place)
                connection._send()
                client.ping()
    finally:
        signal.signal(signal.SIGPIPE, before)


ENDINGS: Dict[str, str] = {
    "a client that nobody closes": "client = gloved.Client(); client.ping()",
    "an abandoned pipeline": """
client = gloved.Client()
answers = client.ask_all(requests.near("king", k=1000) for _ in range(999))
next(answers)""",
    "a cycle": """
client = gloved.Client(); client.ping(); client.itself = client
answers = client.ask_all(requests.near("king") for _ in range(999)); next(answers)
client.answers = answers""",
    "a thread that still asks": """
import threading
client = gloved.Client(); client.ping()
def ask():
    while True: client.ping()
threading.Thread(target=ask, daemon=True).start()""",
    "an error that nobody catches": """
client = gloved.Client()
answers = client.ask_all(requests.ping() for _ in range(999)); next(answers)
sys.exit(0)""",
    "a child that exits": """
client = gloved.Client(); client.ping()
answers = client.ask_all(requests.ping() for _ in range(999)); next(answers)
child = os.fork()
if not child: sys.exit(len(list(answers)) - 998)
assert os.waitpid(child, 0)[1] == 0
assert len(list(answers)) == 998""",
    "a client after a pipeline in a module": """
client = gloved.Client(); list(client.ask_all([requests.ping()] * 3))
import gloved as itself; itself.client = client""",
    "an AsyncClient made but not used": "client = gloved.AsyncClient()",
    "an AsyncClient that was closed": """
async def main():
    async with gloved.AsyncClient() as client:
        await asyncio.gather(*(client.ping() for _ in range(999)))
asyncio.run(main())""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_end_of_a_program(daemon: conftest.Daemon, ending: str) -> None:
    program = "import asyncio, os, sys, gloved\nfrom gloved import requests\n" + ENDINGS[ending]
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={
            **os.environ,
            "GLOVED_SOCKET": daemon.socket,
            "PYTHONPATH": str(conftest.REPOSITORY / "python"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=10,
    )
    assert (finished.returncode, finished.stdout) == (0, b"")


def test_answers_are_those_of_the_line_protocol(client: gloved.Client) -> None:
    """Against a client that is none of this code."""
    pick = random.Random(5)
    words = words_of(client, 100)
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(os.fspath(client_socket(client)))
        file = plain.makefile("rwb")
        file.write(b"FORMAT json\n")
        for _ in range(50):
            word = pick.choice(words)
            file.write(f'NEAR k=7 "{word}"\n'.encode())
            file.flush()
            reply = json.loads(file.readline())
            if not reply["results"]:
                reply = json.loads(file.readline())
            expected = [(each["word"], float(each["score"])) for each in reply["results"]]
            assert [tuple(each[:2]) for each in client.near(word, k=7)] == expected
        file.close()


def client_socket(client: gloved.Client) -> str:
    with client._pool._returned:
        return str(client._pool._idle[0]._socket.getpeername())
