"""Load whose every answer is checked: questions with known answers, and clients that ask them,
also beside others who misbehave."""
import array
import collections
import contextlib
import os
import random
import re
import select
import socket
import threading
import time

import faults
import harness

WRITTEN = 5
# Questions of each kind.
EACH = 12


def questions_of(words, chance):
    """Requests of every kind whose answer depends on the model, with some of the words."""

    def some(count):
        return b" ".join(chance.sample(words, count))

    made = []
    for _ in range(EACH):
        made += [
            b"NEAR k=5 " + some(1),
            b"NEAR k=10 fields=row,rank,norm " + some(3),
            b"NEAR k=3 norm=unit "
            + chance.choice(words)
            + b" - "
            + chance.choice(words)
            + b" + "
            + chance.choice(words),
            b"SIM " + some(2),
            b"ANALOGY k=3 method=mul " + some(3),
        ]
    made += [
        b"RANK " + some(2),
        b"RANK ( " + some(3) + b" ) ( " + some(2) + b" )",
        b"ODD " + some(4),
        b"ODD ( " + some(2) + b" ) " + some(2),
        b"DIST norm=unit ( " + some(3) + b" ) " + some(1),
        b"MATRIX " + some(3),
        b"VEC " + some(1),
        b"PREFIX k=5 " + some(1)[:2],
    ]
    return made


def words_of(*models):
    """Words of letters and digits that all these models have."""
    lists = []
    for model in models:
        with open(f"{model}/keys", "rb") as keys:
            lists.append(keys.read().split(b"\n")[:-1])
    others = [set(each) for each in lists[1:]]
    return [
        word
        for word in lists[0]
        if re.fullmatch(rb"[a-z][a-z0-9]*", word) and all(word in other for other in others)
    ]


class Book:
    """The right answer to each question, by the generation of the model."""

    def __init__(self, questions):
        self.questions = list(questions)
        self.answers = {question: {} for question in self.questions}

    def learn(self, path):
        """Asks a healthy daemon; returns the generation that answered."""
        generations = set()
        with harness.Connection(path) as connection:
            for question in self.questions:
                reply = harness.without_us(connection.ask(question))
                generation = harness.generation_of(reply)
                if generation is None:
                    raise harness.Broken(f"{question!r} is answered {reply[:200]!r}")
                generations.add(generation)
                self.answers[question][generation] = reply
        (only,) = generations
        return only

    def fault_of(self, question, reply):
        """None for a right answer, else «mixed» or «wrong». A mixed answer is right for another
        generation than its status line names."""
        reply = harness.without_us(reply)
        known = self.answers[question]
        if known.get(harness.generation_of(reply)) == reply:
            return None
        lines = reply.partition(b"\n")[2]
        return (
            "mixed"
            if any(lines == other.partition(b"\n")[2] for other in known.values())
            else "wrong"
        )


class Tally:
    """What all clients together received."""

    def __init__(self):
        self.lock = threading.Lock()
        self.right = collections.Counter()  # by generation
        self.faults = collections.Counter()  # wrong, mixed
        self.lost = collections.Counter()  # unanswered, but asked again: by why
        self.failed = collections.Counter()  # not answered at all: by why
        self.refused = collections.Counter()  # connects, by why
        self.connected = 0
        self.slowest_s = 0.0
        self.last_right_at = None
        self.last_right_asked_at = 0.0  # when the latest rightly answered question was asked
        self.examples = {"answered": [], "failed": []}

    def answered(self):
        return sum(self.right.values())

    def example(self, kind, text):
        if len(self.examples[kind]) < WRITTEN:
            self.examples[kind].append(text)

    def wrong(self):
        """Complaints about answers."""
        return [f"answers: {dict(self.faults)}", *self.examples["answered"]] if self.faults else []

    def complaints(self):
        """Complaints about answers, and about questions without one."""
        made = self.wrong()
        if self.failed:
            made += [f"queries that failed: {dict(self.failed)}", *self.examples["failed"]]
        if self.refused:
            made.append(f"connects that were refused: {dict(self.refused)}")
        return made


class Question:
    def __init__(self, line):
        self.line = line
        self.tries = 0
        self.asked_at = 0.0


class Asker:
    """A client in its own thread. It keeps `ahead` questions unanswered and checks every answer.
    After a lost connection or ERR unavailable it asks unanswered questions again on a new
    connection, after `again_s`, each at most `retries` times."""

    def __init__(self, path, book, tally, seed, *, ahead=1, retries=0, again_s=0, reconnects=False):
        self.path = path
        self.book = book
        self.tally = tally
        self.chance = random.Random(seed)
        self.ahead = ahead
        self.retries = retries
        self.again_s = again_s
        self.reconnects = reconnects  # a connection for every question
        self.right = 0  # answers
        self.last_generation = None
        self.connection = None
        self.lost = False  # the connection has failed
        self.replies = harness.Replies()
        self.owed = collections.deque()
        self.again = collections.deque()
        self.ending = threading.Event()
        self.crash = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        """Ends it once all is answered; returns complaints."""
        self.ending.set()
        self.thread.join(2 * harness.PATIENCE_S)
        if self.thread.is_alive():
            return ["a client does not end"]
        return [f"a client ended early: {self.crash!r}"] if self.crash else []

    def _run(self):
        try:
            while not self.ending.is_set() or self.owed or self.again:
                if self.connection is None and not self._connect():
                    continue
                self._ask()
                self._listen()
        except Exception as fault:  # pylint: disable=broad-except
            self.crash = fault
        finally:
            if self.connection is not None:
                self.connection.close()

    def _connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(harness.PATIENCE_S)
        try:
            connection.connect(self.path)
        except OSError as fault:
            connection.close()
            with self.tally.lock:
                self.tally.refused[type(fault).__name__] += 1
            time.sleep(0.01)
            return False
        with self.tally.lock:
            self.tally.connected += 1
        self.connection = connection
        self.lost = False
        self.replies = harness.Replies()
        return True

    def _ask(self):
        lines = []
        while (
            len(self.owed) < self.ahead
            and (self.again or not self.ending.is_set())
            and not self.lost
        ):
            question = (
                self.again.popleft()
                if self.again
                else Question(self.chance.choice(self.book.questions))
            )
            question.tries += 1
            question.asked_at = question.asked_at or time.monotonic()
            self.owed.append(question)
            lines.append(question.line + b"\n")
        if lines:
            try:
                self.connection.sendall(b"".join(lines))
            except OSError:
                # Received replies are still to be read.
                self.lost = True

    def _listen(self):
        if not self.owed:
            self._lose("nothing") if self.lost else None
            return
        try:
            data = self.connection.recv(1 << 18)
        except TimeoutError:
            return self._lose("no answer in time")
        except OSError as fault:
            return self._lose(type(fault).__name__)
        if not data:
            return self._lose("closed")
        for reply in self.replies.take(data):
            if not self.owed:
                raise harness.Broken(f"more than was asked for: {reply[:200]!r}")
            self._judge(self.owed.popleft(), reply)
        if self.reconnects and not self.owed:
            self.connection.close()
            self.connection = None
        return None

    def _judge(self, question, reply):
        now = time.monotonic()
        if reply.startswith(b"ERR unavailable "):
            self.lost = True
            return self._ask_again(question, "ERR unavailable")
        if not reply.startswith(b"OK "):
            return self._ask_again(
                question, reply.partition(b"\n")[0][:80].decode(errors="replace")
            )
        fault = self.book.fault_of(question.line, reply)
        with self.tally.lock:
            if fault is None:
                self.right += 1
                self.last_generation = harness.generation_of(reply)
                self.tally.right[self.last_generation] += 1
                self.tally.last_right_at = now
                self.tally.last_right_asked_at = max(
                    self.tally.last_right_asked_at, question.asked_at
                )
                self.tally.slowest_s = max(self.tally.slowest_s, now - question.asked_at)
            else:
                self.tally.faults[fault] += 1
                self.tally.example(
                    "answered", f"{fault}: {question.line!r} is answered {reply[:300]!r}"
                )
        return None

    def _lose(self, why):
        self.connection.close()
        self.connection = None
        while self.owed:
            self._ask_again(self.owed.popleft(), why)
        if self.again:
            time.sleep(self.again_s)

    def _ask_again(self, question, why):
        if question.tries > self.retries:
            with self.tally.lock:
                self.tally.failed[why] += 1
                self.tally.example("failed", f"failed: {question.line!r}: {why}")
        else:
            with self.tally.lock:
                self.tally.lost[why] += 1
            self.again.append(question)


def start(path, book, tally, seed, lone, pipelined, ahead=50, **options):
    """Starts `lone` clients that wait for each answer, and `pipelined` ones that do not."""
    made = [Asker(path, book, tally, seed + number, **options) for number in range(lone)]
    return made + [
        Asker(path, book, tally, seed + lone + number, ahead=ahead, **options)
        for number in range(pipelined)
    ]


def all_answered(askers):
    """A condition: each has got the answers that it waits for now, and one more."""
    wanted = [asker.right + asker.ahead for asker in askers]
    return lambda: all(asker.right > count for asker, count in zip(askers, wanted))


def two_models(bin_dir, work, rows):
    """Two texts with common words and different numbers, with models: [(text, model), …]."""
    made = []
    for text in faults.make_inputs(work, rows, "text"):
        model = text.removesuffix(".txt") + ".model"
        harness.convert(bin_dir, text, model)
        made.append((text, model))
    return made


def stop(askers):
    """Ends the clients; returns complaints."""
    for asker in askers:
        asker.ending.set()
    return [complaint for asker in askers for complaint in asker.stop()]


class Witness:
    """A client in a child process, so that this program's work does not delay it. It asks questions
    with known answers while others misbehave."""

    QUESTIONS = (
        b"NEAR k=5 king - man + woman",
        b"SIM king queen",
        b"PING",
        b"HAS king King",
        b"NEAR k=3 xyzzy-foo",
    )

    def __init__(self, path, questions=QUESTIONS, pause_s=0.001):
        self.answers = []  # (time asked, seconds); filled by stop()
        down, self.ending = os.pipe()
        self.result, up = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.ending)
                os.close(self.result)
                times, complaint = self._ask(path, questions, pause_s, down)
                with os.fdopen(up, "wb") as out:
                    out.write(complaint.encode() + b"\n" + times.tobytes())
            finally:
                os._exit(0)
        os.close(down)
        os.close(up)

    @staticmethod
    def _ask(path, questions, pause_s, until):
        times = array.array("d")
        try:
            with harness.Connection(path) as connection:
                wanted = [harness.without_us(connection.ask(question)) for question in questions]
                while not select.select([until], [], [], pause_s)[0]:
                    number = len(times) // 2 % len(questions)
                    begun = time.monotonic()
                    got = harness.without_us(connection.ask(questions[number]))
                    times.extend((begun, time.monotonic() - begun))
                    if got != wanted[number]:
                        return times, f"{questions[number]!r} is suddenly answered {got[:300]!r}"
        except (harness.Broken, OSError) as fault:
            return times, f"its connection broke: {fault}"
        return times, "" if times else "it was never answered"

    def stop(self):
        """Ends it; returns complaints."""
        # A byte, since closing is not enough: later processes may hold the pipe too. With a
        # complaint it has ended already.
        with contextlib.suppress(BrokenPipeError):
            os.write(self.ending, b".")
        os.close(self.ending)
        with os.fdopen(self.result, "rb") as result:
            complaint = result.readline().decode().strip()
            times = array.array("d", result.read())
        os.waitpid(self.pid, 0)
        self.answers = list(zip(times[::2], times[1::2]))
        return [f"witness: {complaint}"] if complaint else []

    def told(self):
        """For a line of figures."""
        slowest_ms = 1000 * max((took for _, took in self.answers), default=0)
        return f"the witness asked {len(self.answers)} times, answered after {slowest_ms:.0f} ms"

    def between(self, begin, end):
        """Seconds of the answers to questions asked between `begin` and `end`."""
        return [took for when, took in self.answers if begin <= when < end]
