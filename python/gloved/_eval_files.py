"""Files of questions with known answers, for python3 -m gloved eval."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from typing import IO, Callable, Iterator, List, NamedTuple, NoReturn, Optional, Tuple

from ._command import Fault, name_of, opened, say, visible
from ._lines import lines_of

MAX_WORD_BYTES = 4096
"""Three such words fit into a request, even if quoting makes four bytes of each."""

_MAX_QUESTIONS = 10_000_000
_BLANKS = " \t\r\v\f"
_BETWEEN_BLANKS = re.compile(r"[^ \t\r\v\f]+")
_BETWEEN_BLANKS_OR_COMMAS = re.compile(r"[^ \t\r\v\f,]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

Words = Tuple[str, str, str, str]


@dataclass
class Section:
    """Questions of one kind: a is to b as c is to the expected word."""

    name: str
    questions: List[Words] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """By the name, as in word2vec's questions-words.txt."""
        return "syntactic" if self.name.startswith("gram") else "semantic"


class Pair(NamedTuple):
    """Two words, and how similar people found them."""

    first: str
    second: str
    score: float


class _Lines:
    """The lines that are not blank, without blanks at their ends."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._name = name_of(path)
        self._lines = lines_of(file, self._name)
        self._number = 0
        self._questions = 0

    def __iter__(self) -> Iterator[str]:
        for self._number, line in self._lines:
            line = line.strip(_BLANKS)
            if line:
                yield line

    def count(self, words: Tuple[str, ...]) -> None:
        """Notes that the line is a question with these words. Fault: it is beyond the limits."""
        self._questions += 1
        if self._questions > _MAX_QUESTIONS:
            self.fail(f"more than {_MAX_QUESTIONS} questions; split the file")
        for word in words:
            # Nearly all are far shorter, and need not be encoded.
            if len(word) > MAX_WORD_BYTES // 4 and len(word.encode()) > MAX_WORD_BYTES:
                self.fail(
                    f"a word of {len(word.encode())} bytes ({shown(word[:20])}…), more than the"
                    f" limit of {MAX_WORD_BYTES}; remove the line"
                )

    def fail(self, what: str) -> NoReturn:
        """Fault of this line."""
        raise Fault(f"{self._name}: line {self._number}: {what}")


def shown(text: str) -> str:
    """A text of the file in a message, in quotes, cut if it is long."""
    return f'"{visible(text[:80])}"' + ("…" if len(text) > 80 else "")


def _end_with_commas(fields: List[str]) -> bool:
    return all(len(each) > 1 and each.endswith(",") for each in fields[:-1])


def _fields(line: str, count: int, fits: Callable[[List[str]], bool] = bool) -> List[str]:
    """The fields of a line: `count` that are between blanks, or between commas, or between both.

    Of these ways the first is taken whose fields fit, or else the first that gives so many. So a
    word may have commas, as «1,000», and between commas blanks, as «new york».
    """
    by_blanks = _BETWEEN_BLANKS.findall(line)
    if "," not in line:
        return by_blanks
    by_commas = [each.strip(_BLANKS) for each in line.split(",")]
    ways = [by_commas, _BETWEEN_BLANKS_OR_COMMAS.findall(line)]
    # In «a, b, c, d» no comma is of a word.
    ways.insert(len(ways) if _end_with_commas(by_blanks) else 0, by_blanks)
    possible = [fields for fields in ways if len(fields) == count and all(fields)]
    return next(filter(fits, possible), possible[0] if possible else by_blanks)


def _counted(fields: List[str], what: str) -> str:
    return f"{len(fields)} {what}" + ("" if len(fields) == 1 else "s")


def read_analogies(path: str) -> List[Section]:
    """The sections of a file. A line «: NAME» begins one; any other line is a question.

    Questions before the first such line, as in GloVe's files, form a section with the file's name,
    without «.txt». Sections with equal names stay apart.
    """
    sections: List[Section] = []
    with opened(path) as file:
        lines = _Lines(file, path)
        for line in lines:
            if line.startswith(":"):
                sections.append(Section(line.lstrip(": \t")))
                continue
            fields = _fields(line, 4)
            if len(fields) != 4:
                lines.fail(
                    f"{_counted(fields, 'word')} where a question has four, {shown(line)};"
                    " correct or remove the line"
                )
            question = fields[0], fields[1], fields[2], fields[3]
            lines.count(question)
            if not sections:
                name = os.path.basename(name_of(path))
                sections.append(Section(name[: -len(".txt")] if name.endswith(".txt") else name))
            sections[-1].questions.append(question)
    if not any(each.questions for each in sections):
        raise Fault(f"{name_of(path)} holds no questions")
    return sections


def _number(text: str) -> Optional[float]:
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def _ends_with_number(fields: List[str]) -> bool:
    return _number(fields[-1]) is not None


def read_pairs(path: str) -> List[Pair]:
    """The pairs of a file of lines: word, word, score. The first line may be a header, which is
    told; lines that begin with # are comments. TABs separate fields if the line has one."""
    found: List[Pair] = []
    is_first = True
    with opened(path) as file:
        lines = _Lines(file, path)
        for line in lines:
            if line.startswith("#"):
                continue
            if "\t" in line:
                fields = [each for each in line.replace("\r", "\t").split("\t") if each]
            else:
                fields = _fields(line, 3, _ends_with_number)
            if len(fields) != 3:
                lines.fail(
                    f"{_counted(fields, 'field')} where a pair has three (word, word, score),"
                    f" {shown(line)}; cut the file to these, as with cut -f"
                )
            score = _number(fields[2])
            was_first, is_first = is_first, False
            if score is None and was_first:
                say(f"{name_of(path)}: {shown(line)} is taken for a header and skipped")
                continue
            if score is None:
                lines.fail(
                    f"the score {shown(fields[2])} is not a number; correct or remove the line"
                )
            lines.count((fields[0], fields[1]))
            found.append(Pair(fields[0], fields[1], score))
    if not found:
        raise Fault(f"{name_of(path)} holds no pairs")
    return found
