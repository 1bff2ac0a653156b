"""All words of a model, and all its vectors, read through the daemon."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
)

from . import _vectors, requests
from ._wire import Reply, Request
from .errors import Internal, Unavailable, UnknownWord

if TYPE_CHECKING:
    from .client import Client

# Bytes that a word of a model may have.
_BYTES = [bytes((byte,)) for byte in range(1, 256) if byte not in b"\t\n\r"]

# Quoted, a character has at most four bytes. A request has at most 65,536.
_MAX_CHARACTERS = 14_000
_MAX_WORDS = 128


def chunks(words: Sequence[str]) -> Iterator[slice]:
    """Slices of words that fit into one request each."""
    start = characters = 0
    for index, word in enumerate(words):
        characters += len(word) + 1
        if index > start and (index - start >= _MAX_WORDS or characters > _MAX_CHARACTERS):
            yield slice(start, index)
            start, characters = index, len(word) + 1
    if start < len(words):
        yield slice(start, len(words))


def _vectors_of_reply(reply: Reply) -> Tuple[str, bytes]:
    texts = (each["vector_base64"] for each in reply["results"])
    return reply["generation"], _vectors.join_base64(texts)


def rows(
    client: Client,
    words: Sequence[str],
    places: Sequence[int],
    count: int,
    tell: Callable[[int], None] = lambda _: None,
) -> Tuple[Any, List[str]]:
    """A matrix of `count` rows: the vector of words[i] is at row places[i], other rows are zero.

    Returns it and the generations of the replies. There must be at least one word. tell() gets the
    number of vectors that have been read, again and again.
    UnknownWord: the model does not have a word.
    """
    parts = list(chunks(words))
    asked = (
        Request(
            requests.vec(words[part], unknown="error", case="exact").line, _vectors_of_reply
        )
        for part in parts
    )
    matrix: Any = None
    row_bytes = 0
    generations = set()
    for part, (generation, data) in zip(parts, client.ask_all(asked)):
        if matrix is None:
            row_bytes = len(data) // len(words[part])
            matrix = _vectors.empty_rows(count, row_bytes // 4)
        if len(data) != row_bytes * len(words[part]):
            raise Unavailable("the model was replaced while its vectors were read; ask again")
        generations.add(generation)
        _vectors.put_rows(matrix, places[part], data)
        tell(part.stop)
    return matrix, list(generations)


class Snapshot:
    """The words of one generation of a model by rank, most frequent first."""

    def __init__(self, generation: str, words: List[str]) -> None:
        self.generation = generation
        self.words = words
        self.index: Dict[str, int] = {word: rank for rank, word in enumerate(words)}
        self.vectors: Optional[Any] = None
        """Row i is the vector of words[i], once read_vectors() has read them."""
        self._norms: Optional[Any] = None

    @property
    def norms(self) -> Any:
        """The length of each of the vectors, in float64."""
        if self._norms is None:
            self._norms = _vectors.row_norms(self.vectors)
        return self._norms

    def read_vectors(self, client: Client) -> bool:
        """Reads all vectors, unless it has; False if the model was replaced."""
        if self.vectors is None:
            try:
                matrix, generations = rows(
                    client, self.words, range(len(self.words)), len(self.words)
                )
            except (UnknownWord, Unavailable):
                return False
            if generations != [self.generation]:
                return False
            self.vectors = _vectors.read_only(matrix)
        return True


def _ranks_of_reply(reply: Reply) -> Tuple[str, int, List[Tuple[int, str]]]:
    # HAS also tells of words that the model does not have.
    words = [(each["rank"], each["word"]) for each in reply["results"] if "rank" in each]
    return reply["generation"], reply["rows"], words


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def read_words(client: Client) -> Optional[Snapshot]:
    """All words of the model; None if it was replaced meanwhile.

    PREFIX returns at most max_k words. If that many begin with a byte, all that begin with it and
    any second byte are asked for, and so on. The word that is the prefix itself is asked for alone.
    """
    max_k = int(client.stats()["max_k"])
    words: List[Optional[str]] = []
    generations = set()
    prefixes = _BYTES
    while prefixes:
        asked = [
            Request(requests.prefix(_text(each), k=max_k, fields="rank").line, _ranks_of_reply)
            for each in prefixes
        ]
        full: List[bytes] = []
        for prefix, (generation, count, found) in zip(prefixes, client.ask_all(asked)):
            generations.add(generation)
            if len(generations) > 1:
                return None
            words = words or [None] * count
            for rank, word in found:
                words[rank] = word
            if len(found) == max_k:
                full.append(prefix)
        if full:
            has = (
                Request(
                    requests.has([_text(each)], fields="rank", case="exact").line, _ranks_of_reply
                )
                for each in full
            )
            for generation, _, found in client.ask_all(has):
                generations.add(generation)
                if len(generations) > 1:
                    return None
                for rank, word in found:
                    words[rank] = word
        prefixes = [prefix + byte for prefix in full for byte in _BYTES]
    complete = [word for word in words if word is not None]
    if len(complete) != len(words):
        raise Internal(f"gloved showed {len(complete)} of its {len(words)} words")
    return Snapshot(generations.pop(), complete)
