"""python3 -m gloved explore: what its server answers, and whom it refuses.

browser/test_page.py has the tests of the page itself.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple
from urllib.parse import urlencode, urlsplit

import pytest

import gloved
from conftest import REPOSITORY, Daemon, run_process
from fake import Peer, serving
from gloved_explore.answers import Answers, _words, typed
from gloved_explore.server import PageServer

numpy = pytest.importorskip("numpy", reason="explore needs numpy (package python3-numpy)")


class Explorer:
    """A process of explore, and its address."""

    def __init__(self, daemon: Daemon, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gloved", "explore", "--socket", daemon.socket, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            pytest.fail(f"explore does not serve: {self.process.communicate()[1]}")
        self.told = self.process.stdout.readline()
        address = urlsplit(self.url)
        self.port = int(address.port or 0)
        self.path = address.path

    def get(
        self, path: str, method: str = "GET", **headers: str
    ) -> Tuple[int, Dict[str, str], bytes]:
        """Status, headers by name in lower case, and body; the path is as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            found = {name.lower(): value for name, value in reply.getheaders()}
            return reply.status, found, reply.read()
        finally:
            connection.close()

    def ask(self, question: str, **fields: object) -> Any:
        status, headers, body = self.get(f"{self.path}{question}?{urlencode(fields)}")
        assert (status, headers["content-type"]) == (200, "application/json")
        return json.loads(body)

    def send(self, data: bytes) -> bytes:
        """What comes back for bytes, which need not be HTTP, until the connection ends."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as peer:
            came = b""
            try:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                while True:
                    more = peer.recv(65536)
                    if not more:
                        return came
                    came += more
            except ConnectionError:
                return came

    def stop(self, signal_number: int = signal.SIGTERM) -> Tuple[str, str]:
        self.process.send_signal(signal_number)
        try:
            return self.process.communicate(timeout=30)
        finally:
            self.process.kill()


@pytest.fixture(scope="module")
def explorer(daemon: Daemon) -> Iterator[Explorer]:
    running = Explorer(daemon)
    yield running
    # It writes no log: that would have the token.
    assert running.stop() == ("", "")
    assert running.process.returncode == 0


def words_of(answer: Any) -> List[str]:
    return [each["word"] for each in answer["results"]]


def test_neighbors_are_those_of_the_daemon(explorer: Explorer, client: gloved.Client) -> None:
    answer = explorer.ask("near", q="King - man + woman", k=7)
    expected = client.near(gloved.Expression("king - man + woman"), k=7, fields=("rank",))
    shown = [(each["word"], each["score"], each["rank"]) for each in answer["results"]]
    assert shown == [(each.word, each.score, each.rank) for each in expected]
    assert answer["replaced"] == [["King", "king"]]
    assert answer["generation"] == expected.info.generation
    points = [(each["word"], each["asked"]) for each in answer["points"]]
    asked = [("king", True), ("man", True), ("woman", True)]
    assert points == asked + [(each.word, False) for each in expected] + [("", True)]
    assert "variance" in answer["caption"]


def test_the_map_has_the_query_where_its_vector_is(
    explorer: Explorer, client: gloved.Client
) -> None:
    # Words by weight: -( 2 * man - man ) is -man.
    answer = explorer.ask("near", q="king - ( 2 * man - man ) + .5 * woman", k=5)
    words = [each["word"] for each in answer["points"][:-1]]
    rows = client.vec(words).astype("f8")
    query = rows[words.index("king")] - rows[words.index("man")] + rows[words.index("woman")] / 2
    rows = numpy.vstack([rows, query])
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    rows -= rows.mean(axis=0)
    _, _, axes = numpy.linalg.svd(rows)
    for key, axis in zip("xy", axes):
        found = numpy.array([point[key] for point in answer["points"]])
        expected = rows @ (axis * numpy.sign(axis[numpy.argmax(numpy.abs(axis))]))
        assert numpy.allclose(found, expected, atol=1e-5)


def test_analogies_have_arrows(explorer: Explorer, client: gloved.Client) -> None:
    answer = explorer.ask("analogy", a="man", b="king", c="woman", k=3, top=9000)
    assert words_of(answer) == [
        each.word for each in client.analogy("man", "king", "woman", k=3, top=9000)
    ]
    names = [each["word"] for each in answer["points"]]
    assert [(names[a], names[b]) for a, b in answer["arrows"]] == [
        ("man", "king"), ("woman", words_of(answer)[0])
    ]
    # A word that is asked twice is one point.
    assert len(explorer.ask("analogy", a="man", b="king", c="man", k=2)["points"]) == 4


def test_the_odd_one_comes_first(explorer: Explorer, client: gloved.Client) -> None:
    words = ["breakfast", "lunch", "piano", "dinner"]
    answer = explorer.ask("odd", words=" ".join(words))
    odd = client.odd(words)
    assert answer["facts"] == [["piano", "does not match the others"]]
    assert sorted(words_of(answer)) == sorted(words)
    assert answer["results"][0]["score"] == pytest.approx(odd.score, abs=1e-7)
    scores = [each["score"] for each in answer["results"]]
    assert scores == sorted(scores)
    for text in ("", "king queen", "king King queen KING"):
        assert explorer.ask("odd", words=text)["unfinished"]
    assert "at most 200" in explorer.ask("odd", words="king " * 201)["error"]


def test_similarity_of_two_words(explorer: Explorer, client: gloved.Client) -> None:
    answer = explorer.ask("sim", a="Coffee", b="tea", k=4)
    assert answer["facts"] == [
        [f"{client.sim('coffee', 'tea'):.6f}", "cosine"],
        [f"{client.dist('coffee', 'tea'):.6f}", "squared distance"],
        [str(client.rank("coffee", "tea")), "place of tea among neighbours of coffee"],
        [str(client.rank("tea", "coffee")), "place of coffee among neighbours of tea"],
    ]
    assert answer["replaced"] == [["Coffee", "coffee"]]
    assert words_of(answer) == [
        each.word for each in client.near(["coffee", "tea"], norm="unit", k=4)
    ]
    # Of words whose vectors differ in length, the sum is between their directions.
    between = [each.word for each in client.near(["the", "snake"], norm="unit", k=9)]
    assert between != [each.word for each in client.near(["the", "snake"], k=9)]
    assert words_of(explorer.ask("sim", a="the", b="snake", k=9)) == between
    assert len(explorer.ask("sim", a="tea", b="tea")["facts"]) == 2


NOT_KNOWN = b'{"ok":false,"code":"unknown_word","message":"none"%s}\n'
NOT_FINITE = base64.b64encode(numpy.array([1, numpy.nan], "f4").tobytes())


@pytest.mark.parametrize(
    "near, vec, told",
    [
        (NOT_KNOWN % b"", b"", "none"),
        # What begins like it cannot be read.
        (NOT_KNOWN % b',"word":"a","suggestions":["ab"]', b"", "cannot be read"),
        (
            b'{"ok":true,%s,"results":[]}\n',
            b'{"ok":true,%%s,"results":[{"vector_base64":"%s"}]}\n' % NOT_FINITE,
            "not finite",
        ),
    ],
    ids=["no word", "no reply", "no number"],
)
def test_strange_replies_are_told_on_the_page(near: bytes, vec: bytes, told: str) -> None:
    head = b'"us":1,"rows":3,"model":"m","generation":"g","pass":"x","request":"NEAR \\"a\\""'

    def script(peer: Peer) -> None:
        while True:
            line = peer.line()
            if not line:
                return
            replies = {b"NEAR": near, b"VEC": vec}
            reply = replies.get(line.split()[0], b'{"ok":true}\n')
            peer.send(reply.replace(b"%s", head))

    with serving(script) as server, gloved.Client(server.socket) as client:
        answer = Answers(client).ask("near", {"q": "a"})
    assert told in answer["error"]


def test_unknown_words_come_with_others(explorer: Explorer) -> None:
    answer = explorer.ask("near", q="king - kin")
    assert answer["unknown"] == ["kin"] and answer["error"].startswith('"kin" is not in the model')
    instead = [each["word"] for each in answer["instead"]]
    assert instead[:2] == ["king", "kind"] and len(instead) == len(set(instead))
    instead = [each["word"] for each in explorer.ask("near", q="KIN")["instead"]]
    assert instead[:2] == ["king", "kind"]
    for question, fields in {
        "analogy": {"a": "man", "b": "kin", "c": "woman"},
        "odd": {"words": "king kin queen"},
        "sim": {"a": "king", "b": "kin"},
    }.items():
        assert explorer.ask(question, **fields)["unknown"] == ["kin"]
    spellings = explorer.ask("near", q='kin + "kin" + "k\\x69n" + kind')["unknown"]
    assert spellings == ["kin", '"kin"', '"k\\x69n"']


def test_half_typed_text_is_no_error(explorer: Explorer) -> None:
    for text, message in {
        "": "there is no word",
        "king -": "a word follows after -",
        "king + 2 *": "a word follows after *",
        "king - (": "a word follows after (",
        "king - ( man": "a ')' is missing",
        'king - "new yo': "a quote has no end",
    }.items():
        answer = explorer.ask("near", q=text)
        assert answer["unfinished"] and message in answer["error"], text
    assert "')' without" in explorer.ask("near", q="king ) ( man")["error"]


def test_many_words_in_another_case(explorer: Explorer, client: gloved.Client) -> None:
    # A reply names at most 64 of them.
    words = [each.word for each in client.prefix("s", k=90) if each.word.isalpha()][:80]
    assert len(words) == 80
    capitals = " ".join(words).upper()
    assert len(explorer.ask("near", q=capitals, k=3)["points"]) == 84
    mixed = explorer.ask("odd", words=f"{capitals} {' '.join(words)}")
    assert sorted(words_of(mixed)) == sorted(words)


def test_a_negative_word_is_not_the_query(explorer: Explorer) -> None:
    points = explorer.ask("near", q="- king", k=2)["points"]
    assert [each["word"] for each in points[:1] + points[3:]] == ["king", ""]
    # The query is opposite to the word.
    assert points[0]["x"] * points[3]["x"] < 0


@pytest.mark.parametrize(
    ["question", "fields", "message"],
    [
        ("near", {}, "there is no word"),
        ("near", {"q": "king ) k=3"}, "a ')' without its '('"),
        ("near", {"q": "king\nRELOAD"}, "one line"),
        ("near", {"q": "king\0"}, "one line"),
        ("near", {"q": "king - king"}, "zero"),
        ("near", {"q": "king", "k": "201"}, "k is a number from 1 to 200"),
        ("near", {"q": "king", "k": "0"}, "k is a number"),
        ("near", {"q": "king", "top": "-1"}, "top is a number"),
        ("near", {"q": "king", "model": "none"}, 'no model "none" here'),
        ("analogy", {"a": "man", "b": "king"}, "one word is wanted for c, not 0"),
        ("sim", {"a": "king", "b": "a b"}, "one word is wanted for b, not 2"),
        ("sim", {"a": "king", "b": '"tea'}, "a quote has no end"),
    ],
)
def test_wrong_questions_are_errors(
    explorer: Explorer, question: str, fields: Dict[str, str], message: str
) -> None:
    answer = explorer.ask(question, **fields)
    assert message in answer["error"] and "results" not in answer


def test_the_page_is_self_contained(explorer: Explorer) -> None:
    status, headers, page = explorer.get(explorer.path)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>".encode(), page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    # Nothing is loaded from elsewhere, and no handler stands in an attribute.
    assert re.findall(rb"https?://[^\s\"]*", page) == [b"http://www.w3.org/2000/svg"]
    assert not re.search(rb"<[^>]+\s(?:src|on[a-z]+|style)=", page)
    assert b"innerHTML" not in page
    for name in ("referrer-policy", "x-content-type-options", "cross-origin-resource-policy"):
        assert name in headers
    assert headers["cache-control"] == "no-store"


def test_strangers_are_refused(explorer: Explorer) -> None:
    path = explorer.path
    for host in ("evil.example", "127.0.0.1.evil.example", f"evil.example:{explorer.port}", "",
                 "127.0.0.1@evil.example", "127.0.0.1:1:2"):
        for each in (path, f"{path}near?q=king"):
            status, _, body = explorer.get(each, Host=host)
            assert status == 403 and b"host" in body, host
    two = f"GET {path}near?q=king HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert b" 403 " in explorer.send(two.encode()).split(b"\r\n")[0]
    assert b" 403 " in explorer.send(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    for each in ("/", "/near?q=king", "/favicon.ico", path[:-1], path[:-2] + "/near?q=king",
                 path.upper(), "/x" + path, f"http://127.0.0.1{path}"):
        status, headers, body = explorer.get(each)
        assert status == 403 and b"token" in body, each
        assert "content-security-policy" in headers
        assert path.strip("/").encode() not in body
    # A tunnel may end at another port.
    assert explorer.get(f"{path}models", Host="localhost:9")[0] == 200


def test_nobody_gets_through_to_reload(explorer: Explorer, daemon: Daemon) -> None:
    with gloved.Client(daemon.socket) as client:
        before = client.stats()
        for question in ("reload", "RELOAD", "stats", "vec", "near/../reload", "__init__"):
            assert explorer.get(f"{explorer.path}{question}")[0] == 404, question
        for text in ("RELOAD", "king\nRELOAD", "king\r\nRELOAD", ") RELOAD", '"king" RELOAD'):
            for field in ("q", "model", "top", "k"):
                explorer.ask("near", **{"q": "king", field: text})
            explorer.ask("sim", a=text, b=text)
            explorer.ask("odd", words=f"{text} king queen", model=text)
            explorer.ask("analogy", a=text, b="king", c="queen")
        after = client.stats()
    names = [name for name in before if "reload" in name]
    assert names and [before[name] for name in names] == [after[name] for name in names]


def test_large_and_broken_requests_are_refused(explorer: Explorer) -> None:
    ten_megabytes = b"x" * 10_000_000
    begin = f"GET {explorer.path}near?q=".encode()
    end = f" HTTP/1.1\r\nHost: localhost:{explorer.port}\r\n\r\n".encode()
    came = explorer.send(begin + ten_megabytes + end)
    assert b"200 OK" not in came and (not came or b" 414 " in came.split(b"\r\n")[0])
    length = f"Content-Length: {len(ten_megabytes)}\r\n\r\n".encode()
    head = f"{{}} {explorer.path}near?q=king HTTP/1.1\r\nHost: localhost\r\n"
    for method, status in (("POST", b" 501 "), ("GET", b" 400 "), ("PUT", b" 501 ")):
        came = explorer.send(head.format(method).encode() + length + ten_megabytes)
        assert not came or status in came.split(b"\r\n")[0]
        # The body is no second request.
        assert came.count(b"HTTP/1.1 ") <= 1
    assert b" 431 " in explorer.send(
        head.format("GET").encode() + b"A: b\r\n" * 1000 + b"\r\n"
    )
    for data in (b"", b"\0\0\0\0\r\n\r\n", b"\x16\x03\x01\x02", b"GET\r\n\r\n"):
        assert b"200 OK" not in explorer.send(data)
    short = head.format("GET").encode() + b"Content-Length: 5\r\n\r\nhello"
    assert b" 400 " in explorer.send(short).split(b"\r\n")[0]
    hidden = b"Content-Length : 50\r\n\r\n" + b"x" * 50
    assert b" 400 " in explorer.send(head.format("GET").encode() + hidden).split(b"\r\n")[0]
    fields = urlencode([("q", "king")] * 17)
    assert explorer.get(f"{explorer.path}near?{fields}")[0] == 400
    assert explorer.get(f"{explorer.path}near?q=%ff")[0] == 400
    assert words_of(explorer.ask("near", q="king", k=1)) == ["prince"]


@pytest.fixture
def page(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServer]:
    """A server in this process, where strangers have 0.3 seconds."""
    monkeypatch.setattr("gloved_explore.server._STRANGER_SECONDS", 0.3, raising=False)
    with gloved.Client(daemon.socket) as client:
        server = PageServer(Answers(client), 0)
        with server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            yield server
            server.shutdown()
            thread.join()


def status_of(page: PageServer, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_connections_without_the_token_lock_nobody_out(page: PageServer) -> None:
    address = ("127.0.0.1", page.server_port)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            half_open = stack.enter_context(socket.create_connection(address, timeout=5))
            half_open.sendall(b"GET /")
        for _ in range(3):
            assert status_of(page, page.path) == 200
            assert status_of(page, "/") == 403


def test_a_connection_has_to_show_the_token_soon(page: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", page.server_port), timeout=5) as peer:
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            for _ in range(100):
                # Each byte comes in time, and the request never.
                peer.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - begun < 3


def test_a_connection_that_has_the_token_may_be_idle(page: PageServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=5)
    connection.request("GET", page.path)
    connection.getresponse().read()
    opened = connection.sock
    time.sleep(0.6)
    connection.request("GET", page.path)
    assert connection.getresponse().status == 200 and connection.sock is opened
    connection.close()


def test_threads_that_cannot_start_leave_room(
    page: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        for _ in range(70):
            with pytest.raises((OSError, http.client.HTTPException)):
                status_of(page, page.path)
    assert status_of(page, page.path) == 200


def test_many_connections_do_not_hold_it_up(explorer: Explorer) -> None:
    idle = [socket.create_connection(("127.0.0.1", explorer.port)) for _ in range(80)]
    try:
        # The oldest ones make room for others.
        for peer in idle[:16]:
            peer.settimeout(30)
            assert peer.recv(1) == b""
    finally:
        for peer in idle:
            peer.close()
    for _ in range(100):
        try:
            assert explorer.ask("near", q="king", k=1)["results"]
            break
        except (ConnectionError, http.client.HTTPException):
            pass
    else:
        pytest.fail("explore does not answer after others have left")


ODD_TEXT = b"""\
the 1 0 0 1
<script>alert(1)</script> 0.9 0.1 0 1
caf\xe9 0.1 1 0 0
\x01\x1b[31m 0 1 0.2 0
two\xc2\xa0words 0 0 1 0
- 0.5 0.5 0.5 0
"quoted\\ 0.5 0.4 0.5 0
k=3 0.2 0.4 0.5 0
3 0.2 0.1 0.5 0
"""


def test_each_word_can_be_typed_as_it_is_shown(serve_text: Callable[[bytes], Daemon]) -> None:
    explorer = Explorer(serve_text(ODD_TEXT))
    try:
        results = explorer.ask("near", q="the", k=20)["results"]
        assert {each["typed"] for each in results} == {
            "<script>alert(1)</script>",
            '"caf\\xe9"',
            '"\\x01\\x1b[31m"',
            '"two\u00a0words"',
            '"-"',
            '"\\"quoted\\\\"',
            "k=3",
            "3",
        }
        assert "\\x01\\x1b[31m" in {each["word"] for each in results}
        for each in results:
            typed = each["typed"]
            assert explorer.ask("near", q=typed, k=20)["points"][0]["typed"] == typed
            assert explorer.ask("sim", a=typed, b="the")["points"][0]["typed"] == typed
            odd = explorer.ask("odd", words=f"the {typed} k=3 3")
            assert typed in [point["typed"] for point in odd["points"]]
    finally:
        explorer.stop()


def test_typed_words_are_the_words() -> None:
    for word in ("king", "a b", '"', "\\", "caf\udce9", "\udce9\\x41", "x\x7f", "日本", "-", "\t"):
        assert _words(typed(word)) == [word]
    assert _words(' a  "b c"\t"\\x41\\xe6\\xbc\\xa2" -') == ["a", "b c", "A漢", "-"]


PAGE = (REPOSITORY / "python/gloved_explore/page.html").read_text(encoding="utf-8")


def luminance(color: str) -> float:
    """The relative luminance of «#rrggbb», as WCAG 2.2 defines it."""
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_stand_out(scheme: str) -> None:
    roots = re.findall(r":root \{([^}]*)\}", PAGE)
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", roots[scheme == "dark"]))
    # What stands on what, and the contrast that WCAG 2.2 wants (AA): of text, then of edges.
    for front, backs, least in (
        ("text", "back panel bar", 4.5),
        ("faint", "back panel", 4.5),
        ("accent", "back panel", 4.5),
        ("asked", "panel", 4.5),
        ("bad", "back", 4.5),
        ("back", "accent", 4.5),
        ("edge", "back panel", 3.0),
    ):
        for back in backs.split():
            low, high = sorted(luminance(colors[name]) for name in (front, back))
            assert (high + 0.05) / (low + 0.05) >= least, (front, back)


def test_fields_have_names_that_are_read_out() -> None:
    modes = PAGE.split("const MODES")[1].split("};")[0]
    fields = re.findall(r'\["(\w+)",\s*"([^"]+)",\s*"([^"]+)"\]', modes)
    assert [name for name, _, _ in fields] == ["q", "a", "b", "c", "words", "a", "b"]
    for name in re.findall(r'<select id="(\w+)"', PAGE):
        assert re.search(rf'<label id="{name}-label">\w+ <select id="{name}">', PAGE)


def run(daemon: Optional[Daemon], *options: str) -> Tuple[int, str]:
    """Exit status and messages of explore that does not start."""
    arguments = ["--socket", daemon.socket] if daemon else []
    done = run_process("explore", *arguments, *options)
    return done.returncode, done.stderr.decode()


def test_refuses_to_start_in_vain(
    explorer: Explorer, daemon: Daemon, tmp_path: Path
) -> None:
    status, message = run(daemon, "--port", str(explorer.port))
    assert status == 1 and f"port {explorer.port} of 127.0.0.1" in message
    status, message = run(daemon, "--model", "none")
    assert status == 1 and 'no model "none" here' in message
    status, message = run(None, "--socket", str(tmp_path / "none"))
    assert status == 1 and str(tmp_path / "none") in message
    assert run(daemon, "--port", "65536")[0] == 2


def test_ends_by_interrupt_and_outlives_the_daemon(
    serve: Callable[..., Daemon], model_dir: Path
) -> None:
    daemon = serve("--model", str(model_dir))
    explorer = Explorer(daemon)
    assert words_of(explorer.ask("near", q="king", k=1)) == ["prince"]
    daemon.restart()
    assert words_of(explorer.ask("near", q="king", k=1)) == ["prince"]
    assert explorer.told == "is the address of the page. Ctrl-C ends it.\n"
    assert explorer.stop(signal.SIGINT) == ("", "")
    assert explorer.process.returncode == 0


def test_listens_on_the_loopback_interface_alone(explorer: Explorer) -> None:
    listening = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{explorer.port:04X}")
    ]
    assert listening == [f"0100007F:{explorer.port:04X}"]
