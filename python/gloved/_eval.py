"""python3 -m gloved eval, also installed as gloved-eval: how well a model agrees with people."""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
)

from . import _evaluation, _reply, requests
from ._command import (
    Commands,
    Fault,
    Parser,
    run_program,
    say,
    whole_number,
    write_json,
    write_table,
)
from ._eval_files import Pair, Section, Words, read_analogies, read_pairs
from ._eval_words import Vocabulary, fold, look_up
from ._one_model import OneModel
from ._reply import Reply
from ._retry import retries_within
from ._version import __version__
from ._wire import MAX_UNANSWERED, Request
from .client import Client
from .errors import ConnectionFailed, GlovedError, Internal, ModelReplaced, ZeroVector

_SUMMARY = "count right answers to analogies, or compare similarities with people's"

_DESCRIPTION = """Measures how well a model agrees with people. Needs a gloved daemon that serves
it. FILE may be - for stdin.

analogies  A line of FILE has four words, e.g. Athens Greece Oslo Norway: the
           model has to find the fourth. A line ": NAME" begins a section.
           Prints how many answers are correct in each section.
pairs      A line of FILE has two words and a score: how similar people found
           them. Prints Pearson's and Spearman's correlation of the scores with
           the words' cosines."""

_EPILOG = """Examples:
  gloved-eval analogies questions-words.txt     (comes with word2vec)
  gloved-eval pairs wordsim353.tsv
  gloved-eval --case exact --top 400000 --json analogies questions-words.txt
  gloved-eval --questions analogies questions-words.txt | grep wrong

Exit status:
  0  the figures are printed
  1  FILE cannot be used, or the daemon refused or could not be reached
  2  wrong usage"""

_MAX_SECONDS = 86_400.0
_SECONDS_BETWEEN_TOLD = 0.1

# Searches wait for one another. This is far below the 10 s after which the daemon refuses them, so
# that it holds even if other clients ask.
_MAX_WAIT_US = 3e6
# Before the daemon knows how long a search takes.
_USUAL_AHEAD = 64

# ANALOGY leaves out the given words, but not their other spellings. Five hits reach past these, as
# in gensim.
_HITS_IGNORING_CASE = 5

_Item = TypeVar("_Item")


# The command line


def _text(what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"takes {what}")
        return text

    return read


def _seconds(least: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not least <= seconds <= _MAX_SECONDS:
            raise argparse.ArgumentTypeError(
                f"takes seconds from {least:g} to {_MAX_SECONDS:.0f}, not {text}"
            )
        return seconds

    return read


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", choices=("analogies", "pairs"), metavar="analogies|pairs", help=argparse.SUPPRESS)
    add("file", metavar="FILE", help=argparse.SUPPRESS)
    add(
        "--socket", metavar="PATH", type=_text("a path"),
        help="the daemon's socket (default: $GLOVED_SOCKET; if that is not set,"
        " $XDG_RUNTIME_DIR/gloved.sock, then /run/gloved/gloved.sock)",
    )
    add(
        "--timeout", metavar="S", type=_seconds(0.001), default=10.0,
        help="seconds to wait for each reply (default: 10)",
    )
    add(
        "--retry", metavar="S", type=_seconds(0), default=0.0,
        help="seconds to keep trying if no daemon answers or it is busy or restarting; each reply"
        " starts the count again (default: 0)",
    )
    add(
        "--model", metavar="NAME", type=_text("a name"),
        help="model to ask (default: the daemon's first)",
    )
    add(
        "--top", metavar="N", type=whole_number(1), default=300_000,
        help="use only the N most frequent words: skip lines with any other, and take answers from"
        " these words (default: 300000)",
    )
    add(
        "--method", metavar="add|mul", choices=("add", "mul"),
        help="analogies: add the words' vectors (3CosAdd), or multiply their cosines (3CosMul)"
        " (default: add)",
    )
    add(
        "--case", metavar="ignore|exact", choices=("ignore", "exact"), default="ignore",
        help="exact looks words up as written; ignore tries them as written, in lower case, in"
        " capitals and capitalised (oslo, OSLO, Oslo), and takes the most frequent"
        " (default: ignore)",
    )
    add("--json", action="store_true", help="print one JSON object instead of a table")
    add(
        "--questions", action="store_true",
        help="print a line for each question instead of the table, in JSON beside it",
    )
    add("--help", action="help", help="print this help and exit")
    add(
        "--version", action="version", version=f"gloved-eval {__version__}",
        help="print the version and exit",
    )
    parser.set_defaults(run=_run, fail=parser.error)


_FORM: Dict[str, Any] = {
    "description": _DESCRIPTION,
    "epilog": _EPILOG,
    "formatter_class": argparse.RawDescriptionHelpFormatter,
    "add_help": False,
    "allow_abbrev": False,
    "usage": "%(prog)s [options] analogies FILE\n       %(prog)s [options] pairs FILE",
}


def add_to(commands: Commands) -> None:
    """Adds the command to a command line."""
    _add_options(commands.add_parser("eval", help=_SUMMARY, **_FORM))


def main() -> int:
    """The program gloved-eval."""
    parser = Parser(prog="gloved-eval", **_FORM)
    _add_options(parser)
    return run_program(parser)


# Asking


class _Progress:
    """A line on a terminal that tells how far the work is, and goes away at its end."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begun = self._told = time.monotonic()

    def watch(self, items: Iterable[_Item]) -> Iterable[_Item]:
        """The items, while it tells."""
        is_seen = sys.stderr is not None and sys.stderr.isatty()
        return self._tell(items) if is_seen else items

    def _tell(self, items: Iterable[_Item]) -> Iterator[_Item]:
        try:
            for done, item in enumerate(items):
                now = time.monotonic()
                if now - self._told >= _SECONDS_BETWEEN_TOLD:
                    self._told = now
                    rate = done / (now - self._begun)
                    left = round((self._total - done) / max(rate, 1e-9))
                    self._write(
                        f"asking  {100 * done / self._total:.0f} %  {rate:.0f} questions/s"
                        f"  ETA {left // 60}:{left % 60:02}"
                    )
                yield item
        finally:
            self._write("")

    @staticmethod
    def _write(line: str) -> None:
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


class _Answer(NamedTuple):
    """What came of a question or pair."""

    said: Any
    """The word that the model gave, or the cosine; None if there is none."""
    result: str


def _single_query_us(reply: Reply) -> float:
    # 0 before the first query.
    return _reply.number(_reply.result(reply).get("single_query_us", 0))


def _searches_ahead(client: Client) -> int:
    """How many searches to ask before their answers: as many as the daemon makes in _MAX_WAIT_US,
    one by one."""
    us = client.ask(Request(requests.stats().line, _single_query_us))
    return int(min(max(_MAX_WAIT_US / us, 4), MAX_UNANSWERED)) if us > 0 else _USUAL_AHEAD


_Hits = Tuple[str, List[str]]
"""The generation of the model, and its words."""

# A reply without anything in it that JSON escapes.
_PLAIN_REPLY = re.compile(rb'\{"ok":true,[^\\{]*"generation":"([^"\\]+)","results":\[([^\\]*)\]\}')
_PLAIN_HIT = re.compile(r'\{"word":"([^"]+)","score":-?[0-9.e+-]+\}')


def _read_hits(reply: Reply) -> _Hits:
    words = [_reply.word(each["word"]) for each in _reply.results(reply)]
    return _reply.generation(reply), words


def _scan_hits(data: bytes) -> Optional[_Hits]:
    plain = _PLAIN_REPLY.fullmatch(data)
    if plain is None:
        return None
    generation, results = plain.groups()
    try:
        words = _PLAIN_HIT.findall(results.decode())
    except UnicodeDecodeError:
        return None
    if len(words) != results.count(b"{"):
        return None
    return generation.decode("ascii", "replace"), words


def _need_known(known: int, skipped: int, what: str, top: int, hint: Optional[str]) -> None:
    if known == 0:
        raise Fault(
            f"nothing to ask: each of {skipped} {what} has a word that is not among the model's"
            f" {top} most frequent" + (f"; {hint}" if hint else "")
        )


class _Evaluation:
    """Questions to one generation of a model."""

    def __init__(self, client: Client, options: argparse.Namespace) -> None:
        self._client = client
        self._options = options
        self.one_model = OneModel(client)
        self.model = ""
        self.hint: Optional[str] = None

    def _look_up(self, words: Iterable[str]) -> Vocabulary:
        options = self._options
        vocabulary = look_up(self.one_model, words, options.top, options.case == "ignore")
        self.model, self.hint = vocabulary.model, vocabulary.hint
        return vocabulary

    def analogies(self, sections: List[Section]) -> List[List[_Answer]]:
        """The answers to the questions of each section.

        A question with a zero query vector is answered wrongly.
        """
        options = self._options
        questions = [each for section in sections for each in section.questions]
        ahead = _searches_ahead(self._client)
        tokens = self._look_up(word for words in questions for word in words).tokens
        known = [words for words in questions if None not in map(tokens.get, words)]
        _need_known(len(known), len(questions) - len(known), "questions", options.top, self.hint)
        k = _HITS_IGNORING_CASE if options.case == "ignore" else 1
        head = f"ANALOGY case=exact k={k} top={options.top} method={options.method or 'add'}"
        line = head.encode() + b" %b %b %b"
        answers = self.one_model.ask_all(
            (
                Request(line % (tokens[a], tokens[b], tokens[c]), _read_hits, scan=_scan_hits)
                for a, b, c, _ in known
            ),
            accepted=(ZeroVector,),
            ahead=ahead,
            tell_generation=True,
        )
        watched = iter(_Progress(len(known)).watch(answers))
        key: Callable[[str], str] = fold if options.case == "ignore" else lambda word: word
        keys = {word: key(word) for word in tokens}

        def answer(words: Words) -> _Answer:
            a, b, c, expected = map(keys.get, words)
            if a is None or b is None or c is None or expected is None:
                return _Answer(None, "skipped")
            hits = next(watched)
            for hit in () if isinstance(hits, ZeroVector) else hits:
                folded = key(hit)
                # A given word in another case is no answer.
                if folded not in (a, b, c):
                    return _Answer(hit, "correct" if folded == expected else "wrong")
            return _Answer(None, "wrong")

        found = [[answer(words) for words in section.questions] for section in sections]
        # Runs to its end, which checks that the last answers came from the same model.
        next(watched, None)
        return found

    def pairs(self, pairs: List[Pair]) -> List[_Answer]:
        """The cosine of each pair; that of a zero vector is 0."""
        options = self._options
        tokens = self._look_up(word for pair in pairs for word in pair[:2]).tokens
        known = [pair for pair in pairs if pair.first in tokens and pair.second in tokens]
        skipped = len(pairs) - len(known)
        _need_known(len(known), skipped, "pairs", options.top, self.hint)
        if len(known) == 1:
            raise Fault(
                f"one pair is left, {skipped} have unknown words; a correlation needs two"
            )
        line = b"SIM unknown=error case=exact %b %b"
        answers = self.one_model.ask_all(
            (Request(line % (tokens[a], tokens[b]), _reply.score) for a, b, _ in known),
            accepted=(ZeroVector,),
        )
        watched = iter(_Progress(len(known)).watch(answers))

        def answer(pair: Pair) -> _Answer:
            if pair.first not in tokens or pair.second not in tokens:
                return _Answer(None, "skipped")
            cosine = next(watched)
            return _Answer(0.0 if isinstance(cosine, ZeroVector) else cosine, "compared")

        found = [answer(pair) for pair in pairs]
        next(watched, None)
        return found


# Showing


class _Count(NamedTuple):
    """Results of questions."""

    correct: int
    asked: int
    skipped: int

    @property
    def percent(self) -> float:
        return _percent(self.correct, self.asked)

    def members(self) -> Dict[str, Any]:
        """As JSON has them."""
        return {**self._asdict(), "percent": _figure(self.percent)}

    def cells(self) -> List[str]:
        """As the table has them."""
        return [*map(str, self), _fixed(self.percent, 2)]


def _count(answers: Iterable[_Answer]) -> _Count:
    results = [each.result for each in answers]
    skipped = results.count("skipped")
    return _Count(results.count("correct"), len(results) - skipped, skipped)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else math.nan


def _fixed(number: float, decimals: int) -> str:
    return f"{number:.{decimals}f}" if math.isfinite(number) else "-"


def _figure(number: float) -> Any:
    """A number as JSON has it: null if it cannot be computed."""
    if not math.isfinite(number):
        return None
    return int(number) if number == int(number) else number


def _print_json(evaluation: _Evaluation, options: argparse.Namespace, **more: Any) -> None:
    write_json(
        {
            "model": evaluation.model,
            "generation": evaluation.one_model.generation,
            "top": options.top,
            "case": options.case,
            **more,
        }
    )


def _questions(
    options: argparse.Namespace, columns: List[str], rows: Iterable[Iterable[Any]]
) -> Dict[str, Any]:
    """The member of JSON for --questions."""
    return {"questions": [dict(zip(columns, row)) for row in rows]} if options.questions else {}


def _report_analogies(evaluation: _Evaluation, options: argparse.Namespace) -> None:
    sections = read_analogies(options.file)
    answers = evaluation.analogies(sections)
    counts = [_count(each) for each in answers]
    kinds = [section.kind for section in sections]
    totals = {
        kind: _Count(*map(sum, zip((0, 0, 0), *(c for c, k in zip(counts, kinds) if k in of))))
        for kind, of in (
            ("semantic", ["semantic"]),
            ("syntactic", ["syntactic"]),
            ("total", ["semantic", "syntactic"]),
        )
    }
    columns = ["section", "a", "b", "c", "expected", "answer", "result"]
    lines = (
        [section.name, *words, *answer]
        for section, of_section in zip(sections, answers)
        for words, answer in zip(section.questions, of_section)
    )
    if options.json:
        _print_json(
            evaluation,
            options,
            method=options.method or "add",
            sections=[
                {"section": section.name, "kind": section.kind, **count.members()}
                for section, count in zip(sections, counts)
            ],
            **{kind: count.members() for kind, count in totals.items()},
            **_questions(options, columns, lines),
        )
    elif options.questions:
        write_table([columns, *([cell or "-" for cell in line] for line in lines)])
    else:
        write_table([["section", "kind", *_Count._fields, "percent"]])
        write_table(
            [section.name, section.kind, *count.cells()]
            for section, count in zip(sections, counts)
        )
        write_table(["*", kind, *count.cells()] for kind, count in totals.items())


def _report_pairs(evaluation: _Evaluation, options: argparse.Namespace) -> None:
    pairs = read_pairs(options.file)
    answers = evaluation.pairs(pairs)
    compared = [
        (pair.score, answer.said) for pair, answer in zip(pairs, answers) if answer.said is not None
    ]
    people, model = zip(*compared)
    skipped = len(pairs) - len(compared)
    percent = _percent(skipped, len(pairs))
    pearson, _ = _evaluation.pearson(people, model)
    spearman, _ = _evaluation.spearman(people, model)
    columns = ["word1", "word2", "score", "cosine", "result"]
    if options.json:
        _print_json(
            evaluation,
            options,
            pairs=len(compared),
            skipped=skipped,
            skipped_percent=_figure(percent),
            pearson=_figure(pearson),
            spearman=_figure(spearman),
            **_questions(options, columns, ((*pair, *said) for pair, said in zip(pairs, answers))),
        )
    elif options.questions:
        write_table([columns])
        write_table(
            [
                pair.first, pair.second, f"{pair.score:g}",
                _fixed(math.nan if answer.said is None else answer.said, 6), answer.result,
            ]
            for pair, answer in zip(pairs, answers)
        )
    else:
        write_table([["pairs", "skipped", "skipped_percent", "pearson", "spearman"]])
        figures = (_fixed(percent, 2), _fixed(pearson, 6), _fixed(spearman, 6))
        write_table([[str(len(compared)), str(skipped), *figures]])


def _run(options: argparse.Namespace) -> None:
    if options.task == "pairs" and options.method is not None:
        options.fail("--method needs analogies")
    report = _report_analogies if options.task == "analogies" else _report_pairs
    with Client(
        options.socket,
        model=options.model,
        timeout=options.timeout,
        retries=retries_within(options.retry),
    ) as client:
        evaluation = _Evaluation(client, options)
        try:
            report(evaluation, options)
        except ModelReplaced:
            raise Fault("the model was replaced while it was evaluated; start again") from None
        except GlovedError as error:
            if error.code in (ConnectionFailed.code, Internal.code):
                raise
            raise Fault(f"{error.code}: {error}") from None
    if evaluation.hint:
        say(evaluation.hint)
