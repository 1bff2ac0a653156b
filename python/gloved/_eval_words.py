"""Which words of a file of questions a model has, and in which letter case."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import chain
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from . import _snapshot
from ._one_model import OneModel
from ._wire import encode, quote

# To sort n accents behind one letter takes n² steps.
_MAX_COMPOSED_BYTES = 1024

NOT_COMPOSED = (
    "a skipped word has letters that are not composed (Unicode NFC); the same letters, composed,"
    " may be in the model"
)


def _mapped(letter: str, mapped: str) -> str:
    # One for one: «ß» has no capital, and does not fold to «ss».
    return mapped if len(mapped) == 1 else letter


def fold(word: str) -> str:
    """The same for words that differ only in case, each letter mapped to one letter."""
    if word.isascii():
        return word.lower()
    return "".join(_mapped(each, each.casefold()) for each in word)


def _capital(letter: str) -> str:
    capital = _mapped(letter, letter.upper())
    return capital if fold(capital) == letter else letter


def spellings(word: str) -> List[str]:
    """The spellings under which a model may have a word: as it is, in lower case, in capitals, and
    capitalised. Another mixture, such as McDonald, is found only if the word is spelt so."""
    lower = fold(word)
    capitals = lower.upper() if lower.isascii() else "".join(map(_capital, lower))
    return list(dict.fromkeys((word, lower, capitals, capitals[0] + lower[1:])))


def _is_composed(word: str) -> bool:
    return (
        word.isascii()
        or len(word.encode()) > _MAX_COMPOSED_BYTES
        or unicodedata.is_normalized("NFC", word)
    )


@dataclass
class Vocabulary:
    """The words of a file that are among a model's most frequent ones."""

    model: str
    tokens: Dict[str, bytes]
    """For each of these words the model's spelling, as a request has it."""
    hint: Optional[str]
    """What to tell of the others."""


def look_up(
    one_model: OneModel, words: Iterable[str], top: int, ignore_case: bool
) -> Vocabulary:
    """Finds the words of a file, at least one. Of several spellings that the model has among its
    `top` most frequent words, it takes the most frequent."""
    words = list(dict.fromkeys(words))
    key: Callable[[str], str] = fold if ignore_case else lambda word: word
    possible = chain.from_iterable(map(spellings, words)) if ignore_case else words
    asked = list(dict.fromkeys(possible))
    model = ""
    found: Dict[str, Tuple[int, str]] = {}
    for answer, part in _snapshot.has(one_model, asked, fields="rank", case="exact"):
        model = answer.info.model
        for spelling, each in zip(asked[part], answer):
            if each.rank is not None and each.rank < top:
                ranked = each.rank, spelling
                found[key(spelling)] = min(found.get(key(spelling), ranked), ranked)
    tokens = {word: encode(quote(found[key(word)][1])) for word in words if key(word) in found}
    is_composed = all(_is_composed(each) for each in asked if key(each) not in found)
    return Vocabulary(model, tokens, None if is_composed else NOT_COMPOSED)
