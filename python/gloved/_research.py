"""python3 -m gloved weat, similarity and density: figures of sets of words, all of one model."""

from __future__ import annotations

import argparse
import math
import random
import statistics
from itertools import combinations
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence

from . import _reply, _snapshot, _vectors, requests
from ._command import (
    Commands,
    Fault,
    new_command,
    say_how_found,
    some_of,
    unknown_words,
    whole_number,
    words_of_file,
    write_json,
    write_table,
)
from ._keyed_call import Call
from ._one_model import of_one_model
from ._wire import Request
from .client import Client
from .errors import ZeroVector

MAX_EXACT_DIVISIONS = 200_000
"""Of X and Y: more are drawn at random. Ten words each have 184,756."""

_WEAT = """Word Embedding Association Test (Caliskan, Bryson and Narayanan, Science 356, 2017):
whether words X are nearer to words A than to words B, compared with words Y.

  s(w)         mean cosine of w and the words of A, less that of w and the words of B
  effect_size  d = (mean of s over X - mean of s over Y) / standard deviation of s over X and Y,
               that of a sample, with n - 1
  statistic    S = sum of s over X - sum of s over Y
  p            share of the divisions of X and Y into sets of these sizes whose S is larger: of
               all, or of --samples random ones if there are more than 200,000
  divisions    how many p counts
  x y a b      words of each set"""

_WEAT_EXAMPLES = """examples:
  python3 -m gloved weat --x science physics --y art poetry --a he man --b she woman
  python3 -m gloved weat --x-file flowers.txt --y-file insects.txt \\
      --a-file pleasant.txt --b-file unpleasant.txt --unknown skip --format csv"""

_SIMILARITY = """The mean cosine of two sets of words: of each word of A with each word of B. A word
of both counts with itself, as 1. SIM of gloved-client has the cosine of the sums instead."""

_SIMILARITY_EXAMPLES = """example:
  python3 -m gloved similarity --a king queen --b man woman"""

_DENSITY = """The density of each word's neighbourhood: the mean cosine to its K nearest words. The
daemon answers from the neighbours that gloved-neighbors stored, if the model has them. A word
without neighbours has a line without a density."""

_DENSITY_EXAMPLES = """examples:
  python3 -m gloved density king piano monday
  python3 -m gloved density --words words.txt -k 20 --format csv >density.csv"""


class Weat(NamedTuple):
    """The figures of a test, which _WEAT explains."""

    effect_size: float
    p: float
    statistic: float
    divisions: int


def weat(x: Sequence[float], y: Sequence[float], samples: int, seed: int) -> Weat:
    """The test of _WEAT, of the associations s of the words X and of the words Y.

    Fault: all words have the same association.
    """
    every = [*x, *y]
    deviation = statistics.stdev(every)
    if deviation == 0:
        raise Fault("the test has no effect size: all words have the same association")
    divisions = math.comb(len(every), len(x))
    halves: Iterable[Sequence[float]]
    if divisions <= MAX_EXACT_DIVISIONS:
        halves = combinations(every, len(x))
    else:
        divisions = samples
        drawn = random.Random(seed)
        halves = (drawn.sample(every, len(x)) for _ in range(samples))
    # S' is larger where the sum over X' is. fsum rounds once, so that equal sets have equal sums.
    observed = math.fsum(x)
    larger = sum(math.fsum(half) > observed for half in halves)
    return Weat(
        (statistics.fmean(x) - statistics.fmean(y)) / deviation,
        larger / divisions,
        observed - math.fsum(y),
        divisions,
    )


def mean_cosine(vector: Any, others: Any) -> float:
    """The mean cosine of a vector with each of others; that of a zero vector is 0."""
    cosines = [float(each) for each in _vectors.cosines(vector, others)]
    return statistics.fmean(0.0 if math.isnan(each) else each for each in cosines)


# The command line


def add_to(commands: Commands) -> None:
    """Adds the commands to a command line."""
    parser = _new(commands, "weat", "test whether words X are nearer to A than to B, beside Y",
                  _WEAT, _WEAT_EXAMPLES)  # fmt: skip
    _add_sets(parser, {"x": "target words X", "y": "target words Y",
                       "a": "attribute words A", "b": "attribute words B"})  # fmt: skip
    parser.add_argument(
        "--samples", metavar="N", type=whole_number(1, 100_000_000), default=100_000,
        help="random divisions, if there are too many for all (default: 100000)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", metavar="N", type=whole_number(0), default=1, help="of these (default: 1)"
    )
    parser.set_defaults(run=_run_weat)

    parser = _new(commands, "similarity", "the mean cosine of two sets of words",
                  _SIMILARITY, _SIMILARITY_EXAMPLES)  # fmt: skip
    _add_sets(parser, {"a": "words of the first set", "b": "words of the second set"})
    parser.set_defaults(run=_run_similarity)

    parser = _new(commands, "density", "the mean cosine of words to their nearest words",
                  _DENSITY, _DENSITY_EXAMPLES)  # fmt: skip
    parser.add_argument("words", nargs="*", metavar="WORD", help="a word")
    parser.add_argument(
        "--words", dest="words_file", metavar="FILE", help="further words, one a line; - is stdin"
    )
    parser.add_argument(
        "-k", metavar="K", type=whole_number(1), default=10, help="neighbours (default: 10)"
    )
    parser.set_defaults(run=_run_density)


def _new(
    commands: Commands, name: str, summary: str, description: str, examples: str
) -> argparse.ArgumentParser:
    parser = new_command(commands, name, summary, description, examples)
    parser.add_argument(
        "--unknown", choices=("error", "skip"), default="error",
        help="whether a word that the model does not have is an error (the default), or is left"
        " out and told",
    )  # fmt: skip
    parser.add_argument(
        "--case", choices=("exact", "ignore"), default="exact",
        help="whether words are taken as written (the default), or in another case too, and told",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("text", "csv", "tsv", "json"), default="text",
        help="of the table; csv, tsv and json have all digits (default: text)",
    )  # fmt: skip
    return parser


def _add_sets(parser: argparse.ArgumentParser, sets: Dict[str, str]) -> None:
    for name, what in sets.items():
        parser.add_argument(
            f"--{name}", nargs="+", action="extend", default=[], metavar="WORD", help=what
        )
        parser.add_argument(
            f"--{name}-file", metavar="FILE", help="further ones, one a line; - is stdin"
        )
    parser.set_defaults(sets=tuple(sets))


def _sets_of(options: argparse.Namespace) -> List[List[str]]:
    """The words of each set, each once."""
    found = []
    if [getattr(options, f"{name}_file") for name in options.sets].count("-") > 1:
        raise Fault("standard input can have the words of one set alone")
    for name in options.sets:
        words = [*getattr(options, name), *words_of_file(getattr(options, f"{name}_file"))]
        if not words:
            raise Fault(f"set {name} has no word: use --{name} or --{name}-file")
        found.append(list(dict.fromkeys(words)))
    return found


# Asking


class _Known:
    """The words of sets that the model has, in one call."""

    def __init__(self, call: Call, sets: List[List[str]], case: str, skip: bool) -> None:
        model = call.model()
        self.model = {"model": model.model, "generation": model.generation}
        every = list(dict.fromkeys(word for words in sets for word in words))
        found = dict(zip(every, call.known(every, case)))
        self.names = {word: name for word, name in found.items() if name is not None}
        self.skipped = [word for word in every if word not in self.names]
        self.replaced = {word: name for word, name in self.names.items() if name != word}
        self.sets = [
            list(dict.fromkeys(self.names[word] for word in words if word in self.names))
            for words in sets
        ]
        if self.skipped and not skip:
            other_case = ", --case ignore finds them in another case" if case == "exact" else ""
            raise Fault(
                f"not in the model: {unknown_words(self.skipped)}; --unknown skip leaves such"
                f" words out{other_case}"
            )
        for words, known in zip(sets, self.sets):
            if not known:
                raise Fault(f"the model has no word of the set {some_of(words)}")


def _answer(
    options: argparse.Namespace,
    sets: List[List[str]],
    compute: Callable[[Call, _Known], List[Dict[str, Any]]],
) -> None:
    """Prints the rows that come of the words that the model has."""
    with Client(options.socket, model=options.model) as client:
        cache = _snapshot.Cache(client)

        def ask(call: Call) -> Any:
            known = _Known(call, sets, options.case, options.unknown == "skip")
            return known, compute(call, known)

        known, rows = of_one_model(lambda: Call(cache), ask)
    say_how_found(known.skipped, known.replaced)
    if options.format == "json":
        replaced = [{"word": word, "by": name} for word, name in known.replaced.items()]
        found = {"skipped": known.skipped, "replaced": replaced}
        write_json({**known.model, **found, "results": rows})
    else:
        cells = ([_cell(each, options.format) for each in row.values()] for row in rows)
        write_table([list(rows[0]), *cells], options.format)


def _run_weat(options: argparse.Namespace) -> None:
    def compute(call: Call, known: _Known) -> List[Dict[str, Any]]:
        x, y, a, b = (call.vectors(words) for words in known.sets)
        of_x, of_y = (
            [mean_cosine(word, a) - mean_cosine(word, b) for word in words] for words in (x, y)
        )
        figures = weat(of_x, of_y, options.samples, options.seed)
        return [{**figures._asdict(), **dict(zip(options.sets, map(len, known.sets)))}]

    _answer(options, _sets_of(options), compute)


def _run_similarity(options: argparse.Namespace) -> None:
    def compute(call: Call, known: _Known) -> List[Dict[str, Any]]:
        a, b = (call.vectors(words) for words in known.sets)
        mean = statistics.fmean(mean_cosine(word, b) for word in a)
        return [{"mean_cosine": mean, **dict(zip(options.sets, map(len, known.sets)))}]

    _answer(options, _sets_of(options), compute)


def _run_density(options: argparse.Namespace) -> None:
    words = list(dict.fromkeys([*options.words, *words_of_file(options.words_file)]))
    if not words:
        raise Fault("there is no word: name some, or use --words")

    def compute(call: Call, known: _Known) -> List[Dict[str, Any]]:
        (names,) = known.sets
        answers = call.ask_all(
            (
                Request(
                    requests.near(word, k=options.k, unknown="error", case="exact").line,
                    _reply.hits,
                )
                for word in names
            ),
            accepted=(ZeroVector,),
        )
        densities = dict(zip(names, map(_density, answers)))
        # A word that is left out has a line too, so that each line of a file has one.
        return [
            {"word": word, **densities.get(known.names.get(word, ""), _NO_DENSITY)}
            for word in words
        ]

    _answer(options, [words], compute)


_NO_DENSITY = {"density": None, "neighbours": None}


def _density(answer: Any) -> Dict[str, Any]:
    # A zero vector has no neighbours.
    scores = [] if isinstance(answer, ZeroVector) else [score for _, score in answer]
    return {"density": statistics.fmean(scores) if scores else None, "neighbours": len(scores)}


# Showing


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "" if form == "csv" else "-"
    if isinstance(value, float):
        return f"{value:.6f}" if form == "text" else repr(value)
    return str(value)
