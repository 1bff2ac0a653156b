"""Load whose every answer is checked: questions with known answers, and clients that ask them."""
import collections
import random
import re
import socket
import threading
import time

import faults
import service

WRITTEN = 5
GENERATION = re.compile(rb" generation=([0-9a-f]+)")
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


class Replies:
    """Splits received bytes into replies."""

    def __init__(self):
        self.data = b""

    def take(self, data):
        """Adds received bytes; returns the replies that are complete."""
        self.data += data
        at = 0
        whole = []
        while True:
            end = self.data.find(b"\n", at)
            if end < 0:
                break
            status = self.data[at:end]
            lines = 0
            if status.startswith(b"OK "):
                lines = int(status[3:].split(b" ", 1)[0])
            elif not status.startswith(b"ERR "):
                raise service.Broken(f"no status line: {status[:200]!r}")
            for _ in range(lines):
                end = self.data.find(b"\n", end + 1)
                if end < 0:
                    break
            if end < 0:
                break
            whole.append(self.data[at : end + 1])
            at = end + 1
        self.data = self.data[at:]
        return whole


class Book:
    """The right answer to each question, by the generation of the model."""

    def __init__(self, questions):
        self.questions = list(questions)
        self.answers = {question: {} for question in self.questions}

    def learn(self, path):
        """Asks a healthy daemon; returns the generation that answered."""
        generations = set()
        with service.Connection(path) as connection:
            for question in self.questions:
                reply = service.without_us(connection.ask(question))
                generation = generation_of(reply)
                if generation is None:
                    raise service.Broken(f"{question!r} is answered {reply[:200]!r}")
                generations.add(generation)
                self.answers[question][generation] = reply
        (only,) = generations
        return only

    def fault_of(self, question, reply):
        """None for a right answer, else «mixed» or «wrong». A mixed answer is right for another
        generation than its status line names."""
        reply = service.without_us(reply)
        known = self.answers[question]
        if known.get(generation_of(reply)) == reply:
            return None
        lines = reply.partition(b"\n")[2]
        return (
            "mixed"
            if any(lines == other.partition(b"\n")[2] for other in known.values())
            else "wrong"
        )


def generation_of(reply):
    found = GENERATION.search(reply.partition(b"\n")[0])
    return found[1] if found else None


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
    connection, each at most `retries` times."""

    def __init__(
        self, path, book, tally, seed, *, ahead=1, retries=0, pause_s=0.0, reconnects=False
    ):
        self.path = path
        self.book = book
        self.tally = tally
        self.chance = random.Random(seed)
        self.ahead = ahead
        self.retries = retries
        self.pause_s = pause_s
        self.reconnects = reconnects  # a connection for every question
        self.right = 0  # answers
        self.last_generation = None
        self.connection = None
        self.lost = False  # the connection has failed
        self.replies = Replies()
        self.owed = collections.deque()
        self.again = collections.deque()
        self.ending = threading.Event()
        self.crash = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        """Ends it once all is answered; returns complaints."""
        self.ending.set()
        self.thread.join(2 * service.PATIENCE_S)
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
                if self.pause_s:
                    time.sleep(self.pause_s)
        except Exception as fault:  # pylint: disable=broad-except
            self.crash = fault
        finally:
            if self.connection is not None:
                self.connection.close()

    def _connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(service.PATIENCE_S)
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
        self.replies = Replies()
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
                raise service.Broken(f"more than was asked for: {reply[:200]!r}")
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
                self.last_generation = generation_of(reply)
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


def two_models(bin_dir, work, rows):
    """Two texts with common words and different numbers, with models: [(text, model), …]."""
    made = []
    for text in faults.make_inputs(work, rows, "text"):
        model = text.removesuffix(".txt") + ".model"
        publish(bin_dir, text, model)
        made.append((text, model))
    return made


def publish(bin_dir, text, model):
    """Converts over the model that is there, as an administrator does."""
    done = faults.run([f"{bin_dir}/gloved-convert", text, model])
    if done.returncode != 0:
        raise SystemExit(f"gloved-convert fails: {done.stderr}")


def client(bin_dir, path, *words):
    """Runs gloved-client to its end."""
    return faults.run([f"{bin_dir}/gloved-client", "--socket", path, *words])


def stats(path):
    with service.Connection(path) as connection:
        lines = connection.ask(b"STATS").decode().split("\n")[1:]
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


def stop(askers):
    """Ends the clients; returns complaints."""
    for asker in askers:
        asker.ending.set()
    return [complaint for asker in askers for complaint in asker.stop()]


def wait_until(condition, within_s=service.PATIENCE_S):
    """Waits for the condition; returns whether it held in time."""
    watch = faults.Stopwatch()
    while not condition():
        if watch.seconds() > within_s:
            return False
        time.sleep(0.005)
    return True
