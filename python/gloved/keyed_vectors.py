"""gensim's KeyedVectors, answered by a daemon."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NoReturn,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from . import _evaluation, _keyed_near, _snapshot, _socket, _vectors, requests
from ._keyed_absent import OTHER_MODEL, ExplainsAbsent, explain_absent
from ._keyed_arguments import Vocabulary, keys_of, refuse_all, searched, top_of, weighted_keys
from ._keyed_call import Call, is_askable, is_key
from ._keyed_evaluation import analogy_sections, correlations, pair_similarities, with_total
from ._keyed_near import Hits
from ._one_model import of_one_model
from .client import Client
from .errors import TooLong, UnknownWord, ZeroVector

if TYPE_CHECKING:
    from ._vectors import Vector

T = TypeVar("T")
Key = Union[str, int]


class KeyedVectors(metaclass=ExplainsAbsent):
    """The words and vectors of a model, with the methods of gensim's KeyedVectors.

    connect() makes one; KeyedVectors(client) takes a Client. Threads may share it.

    Methods take gensim's arguments, and return what gensim returns. A key is a word, or a word's
    index: an int, whose order is that of frequency. Scores are float64 where gensim has float32.

    An unknown word is an UnknownWord, which is a KeyError and has `suggestions`. Other errors are
    those of gensim, or of the daemon (GlovedError).

    gloved differs from gensim in these points:

    - A query vector of zero raises ZeroVector. gensim returns words in arbitrary order.
    - A word whose vector is zero adds nothing to a sum, and has similarity 0. gensim has NaN.
    - Equal scores are in the order of the words' bytes.
    - topn has a limit, the daemon's max_k: 65,536 by default.
    - most_similar_cosmul() heeds restrict_vocab, and takes ints.
    - A list item that is no key, vector or pair is a TypeError; gensim has an IndexError.
    - What writes or trains is absent. AttributeError tells what to use instead.

    A result is of one model, also if the daemon loads another one while a method asks: then the
    method begins again. ModelReplaced: that happened three times.

    Most methods ask the daemon and keep nothing. Some read all words first, which takes about a
    second for 400,000: index_to_key, key_to_index, the evaluations, and every int as a key. Some
    also read all vectors, see `vectors`. Both are kept until the daemon reloads the model. That is
    noticed with the next answer, or a tenth of a second later.

    Without numpy, vectors are array('f'), and matrices are lists of them.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cache = _snapshot.Cache(client)

    def __getattr__(self, name: str) -> Any:
        explain_absent(name)

    def __reduce__(self) -> Tuple[Any, ...]:
        """A copy, or what another process unpickles, asks the same daemon. Either may be closed."""
        return type(self), (copy.copy(self._client),)

    def __repr__(self) -> str:
        """What is known without asking, for a debugger or a log must not wait for the daemon."""
        model = self._cache.model
        if model is None:
            return f"KeyedVectors<{self._client!r}>"
        return f"KeyedVectors<vector_size={model.dim}, {model.rows} keys, model {model.model!r}>"

    def __enter__(self) -> KeyedVectors:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the client."""
        self._client.close()

    @property
    def client(self) -> Client:
        """The client that asks the daemon: one method for each verb of the protocol."""
        return self._client

    def _call(self, ask: Callable[[Call], T]) -> T:
        """The result of ask(call), which is of one model: it may run several times."""
        return of_one_model(lambda: Call(self._cache), ask)

    # Words and vectors

    def __len__(self) -> int:
        """The number of words."""
        return self._call(Call.rows)

    @property
    def vector_size(self) -> int:
        """How many numbers a vector has."""
        return self._call(Call.dim)

    @property
    def index_to_key(self) -> List[str]:
        """All words, most frequent first. The first use reads them. Do not change the list."""
        return self._call(Call.snapshot).words

    @property
    def key_to_index(self) -> Dict[str, int]:
        """The index of every word. The first use reads all words. Do not change it."""
        return self._call(Call.snapshot).index

    @property
    def vectors(self) -> Any:
        """All vectors, row i that of index_to_key[i]: float32, shape (words, dim), read-only.

        The first use reads them from the daemon. That is 1.4 times their size over the socket,
        and takes some seconds for 400,000 words of 100 numbers. Then they are in this process's
        memory: 160 MB for those. Without numpy it is a list of array('f').
        """
        return self._call(lambda call: call.snapshot(vectors=True)).vectors

    def get_normed_vectors(self) -> Any:
        """All vectors at length 1, shape (words, dim): a copy of `vectors`, as large again."""
        return _vectors.unit_rows(self.vectors)

    def get_index(self, key: Key, default: Optional[int] = None) -> int:
        """A word's place in the order of frequency: 0 is the most frequent word.

        Returns the default, if it is not None, for an unknown key. An int that is an index is
        returned as it is. UnknownWord: the key is unknown.
        """
        return self._call(lambda call: _keyed_near.index_of(call, key, default))

    def has_index_for(self, key: Key) -> bool:
        """Whether the model has the key."""
        return self.get_index(key, -1) >= 0

    def __contains__(self, key: Key) -> bool:
        """Whether the model has the key."""
        return self.has_index_for(key)

    def get_vector(self, key: Key, norm: bool = False) -> Any:
        """The vector of a key, at length 1 if norm is true: float32, shape (dim,), read-only.

        A vector of zero is NaN at length 1, as in gensim. UnknownWord: the key is unknown.
        """

        def ask(call: Call) -> Any:
            return call.vector(call.word(key))

        vector = self._call(ask)
        if norm:
            vector = _vectors.from_floats(_vectors.divided(vector, _vectors.norm(vector)))
        return _vectors.read_only(vector)

    def __getitem__(self, key_or_keys: Union[Key, Iterable[Key]]) -> Any:
        """The vector of a key, shape (dim,); or of several keys, shape (keys, dim): float32.

        UnknownWord: a key is unknown. ValueError: the list is empty.
        """
        if is_key(key_or_keys):
            return self.get_vector(key_or_keys)  # type: ignore[arg-type]
        keys = list(key_or_keys)  # type: ignore[arg-type]
        if not keys:
            raise ValueError("there is no key in the list")

        def ask(call: Call) -> Any:
            return call.vectors(call.words(keys))

        return self._call(ask)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        """TypeError: a model cannot be changed."""
        raise TypeError(f"a vector cannot be set; {OTHER_MODEL}")

    def __delitem__(self, key: object) -> NoReturn:
        """TypeError: a model cannot be changed."""
        raise TypeError(f"a word cannot be deleted; {OTHER_MODEL}")

    def __iter__(self) -> NoReturn:
        """TypeError: one request for each of all words would take long."""
        raise TypeError(
            "KeyedVectors is not iterable: index_to_key has all words, vectors their vectors, and"
            " key_to_index their places"
        )

    def get_vectors(self, words: Iterable[Key], ignore_missing: bool = False) -> Any:
        """The vectors of many words: float32, shape (words, dim). gensim has no such method.

        Asks some hundred words at a time, and does not wait for one answer to ask the next. With
        ignore_missing, the row of an unknown word is zero. UnknownWord: a word is unknown.
        """
        keys = list(words)

        def ask(call: Call) -> Any:
            if ignore_missing:
                return call.vectors(call.known(keys))
            return call.vectors(call.words(keys))

        return self._call(ask)

    def get_mean_vector(
        self,
        keys: Sequence[Any],
        weights: Optional[Sequence[float]] = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Any:
        """The weighted mean of the vectors of keys: float32, shape (dim,).

        keys            words, indices, or vectors, which are taken as they are
        weights         a number for each key; 1 by default. Their magnitudes sum up to the divisor
        pre_normalize   take vectors of words at length 1
        post_normalize  return the mean at length 1
        ignore_missing  leave unknown keys out, instead of UnknownWord

        The mean is computed in float64. ValueError: there are no keys, or not as many weights, or
        a vector has another length.
        """
        if len(keys) == 0:
            raise ValueError("there are no keys to take the mean of")
        factors = [1.0] * len(keys) if weights is None else [float(each) for each in weights]
        if len(keys) != len(factors):
            raise ValueError(f"{len(keys)} keys have {len(factors)} weights")

        def ask(call: Call) -> Any:
            return call.mean(list(keys), factors, pre_normalize, ignore_missing)

        mean = self._call(ask)
        return _vectors.from_floats(_vectors.unit(mean) if post_normalize else mean)

    # Nearest words

    def most_similar(
        self,
        positive: Any = None,
        negative: Any = None,
        topn: Optional[int] = 10,
        clip_start: int = 0,
        clip_end: Optional[int] = None,
        restrict_vocab: Vocabulary = None,
        indexer: Any = None,
    ) -> Hits:
        """The topn words nearest to the mean of keys, and their cosines, best first.

        positive, negative  a key, a vector, or a list of them. A list may also have pairs of a
                            key or vector and its weight. The weight of a pair counts as it stands,
                            under negative too
        clip_end            the same as restrict_vocab
        restrict_vocab      search only that many of the most frequent words; or only the words of
                            a list, which gensim cannot

        Words are taken at length 1, vectors as they are. The words themselves are not returned.
        A topn below 1 gives [].

        UnknownWord: a word is unknown. ValueError: there are no keys. ZeroVector (a ValueError):
        the mean is zero. NotImplementedError: topn is None, clip_start or indexer are given, or
        restrict_vocab is a list and a key is a vector.
        """
        if isinstance(topn, Integral) and topn < 1:
            return []
        refuse_all(topn, "1 - distances(word) has them, in the order of index_to_key")
        if indexer is not None:
            raise NotImplementedError("indexer= is not used: answers are exact without an index")
        if clip_start and not restrict_vocab:
            raise NotImplementedError(
                "clip_start= is not answered: restrict_vocab= searches the most frequent words;"
                " with topn larger, filter the answer by get_index()"
            )
        keys, weights = weighted_keys(positive, negative)
        if not keys:
            raise ValueError("there are no keys to search with")
        top, only = searched(restrict_vocab)
        top = top or top_of(clip_end, "clip_end")
        return self._call(
            lambda call: _keyed_near.nearest(call, keys, weights, call.k(topn), top, only)
        )

    def similar_by_word(
        self, word: Key, topn: Optional[int] = 10, restrict_vocab: Vocabulary = None
    ) -> Hits:
        """The topn words nearest to a word: see most_similar()."""
        return self.similar_by_key(word, topn, restrict_vocab)

    def similar_by_key(
        self, key: Key, topn: Optional[int] = 10, restrict_vocab: Vocabulary = None
    ) -> Hits:
        """The topn words nearest to a key: see most_similar()."""
        return self.most_similar(positive=[key], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_vector(
        self, vector: Vector, topn: Optional[int] = 10, restrict_vocab: Vocabulary = None
    ) -> Hits:
        """The topn words nearest to a vector of shape (dim,): see most_similar()."""
        if not is_key(vector) and not _vectors.is_vector(vector):
            vector = _vectors.from_floats(vector)
        return self.most_similar(positive=[vector], topn=topn, restrict_vocab=restrict_vocab)

    def most_similar_many(
        self,
        words: Iterable[Key],
        topn: int = 10,
        restrict_vocab: Vocabulary = None,
        ignore_missing: bool = False,
    ) -> Iterator[Hits]:
        """The topn nearest words of each of many words, in their order. gensim has no such method.

        It is most_similar(word) for each of them, but requests do not wait for answers. Words are
        taken a few hundred ahead of the answers, so neither need fit in memory. With
        ignore_missing, the answer for a word without one is [].

        UnknownWord: a word is unknown. It is raised in its turn, and ends the iteration. So does
        ModelReplaced: the daemon has loaded another model since the first answer.
        """
        refuse_all(topn, "1 - distances(word) has them, in the order of index_to_key")
        if topn < 1:
            return ([] for _ in words)
        return _keyed_near.nearest_each(
            self._cache, words, topn, *searched(restrict_vocab), ignore_missing
        )

    def most_similar_cosmul(
        self,
        positive: Any = None,
        negative: Any = None,
        topn: Optional[int] = 10,
        restrict_vocab: Optional[int] = None,
    ) -> Hits:
        """The topn words by 3CosMul (Levy and Goldberg, 2014), and their scores, best first.

        With x' = (1 + cosine) / 2, a word's score is the product of x' for all positive keys, over
        the product of x' for all negative keys plus 0.000001.

        The daemon answers one positive key, and two positive keys with a negative one. Anything
        else is computed here from all vectors: see `vectors` for what that costs. With numpy, each
        such call takes some tenths of a second for 400,000 words.

        Vectors are taken as they are, so that x' is that of a cosine only at length 1.
        UnknownWord: a word is unknown. ValueError: there is no positive key.
        """
        if isinstance(topn, Integral) and topn < 1:
            return []
        refuse_all(topn, "ask for as many as the daemon's max_k")
        keys, positives = keys_of(positive, negative)
        for key in keys:
            if not is_key(key) and not _vectors.is_vector(key):
                hash(key)  # TypeError: a list, or a pair of a vector, is no key at all.
                raise ValueError(f"most_similar_cosmul takes keys without weights, not {key!r}")
        top = top_of(restrict_vocab)
        return self._call(lambda call: _keyed_near.nearest_cosmul(call, keys, positives, topn, top))

    # Comparisons

    def similarity(self, w1: Key, w2: Key) -> float:
        """The cosine of two keys; 0 if a vector is zero. UnknownWord: a key is unknown."""
        return self._call(lambda call: call.similarity(call.word(w1), call.word(w2)))

    def distance(self, w1: Key, w2: Key) -> float:
        """1 - similarity(w1, w2)."""
        return 1 - self.similarity(w1, w2)

    def distances(self, word_or_vector: Union[Key, Vector], other_words: Iterable[Key] = ()) -> Any:
        """1 - cosine of a key or vector with each other word: float32, shape (other words,).

        Without other words it is each word of the model, in the order of index_to_key. That reads
        all vectors: see `vectors` for what it costs. A zero vector has distance NaN.

        UnknownWord: a key is unknown. ValueError: the vector has another length than the model's.
        """
        others = list(other_words)

        def ask(call: Call) -> Tuple[Any, Any]:
            vector: Any = word_or_vector
            if is_key(vector):
                vector = call.vector(call.word(vector))
            if others:
                return vector, call.vectors(call.words(others))
            return vector, call.snapshot(vectors=True).vectors

        return _vectors.one_minus(self.cosine_similarities(*self._call(ask)))

    @staticmethod
    def cosine_similarities(vector_1: Vector, vectors_all: Any) -> Any:
        """The cosine of a vector, shape (dim,), with each row of a matrix, shape (rows, dim).

        Returns shape (rows,), of the type of the arrays. It is computed in float64. A zero vector
        has NaN. ValueError: rows have another length than the vector.
        """
        cosines = _vectors.cosines(vector_1, vectors_all)
        return _vectors.like_inputs(cosines, vector_1, vectors_all)

    def rank(self, key1: Key, key2: Key) -> int:
        """The place of key2 among the neighbours of key1: 1 if it is the nearest, or is key1.

        UnknownWord: a key is unknown.
        """
        return self._call(lambda call: _keyed_near.rank(call, call.word(key1), call.word(key2)))

    def closer_than(self, key1: Key, key2: Key) -> List[str]:
        """The words that are closer to key1 than key2 is, most frequent first.

        If they are more than the daemon's max_k, all vectors are read: see `vectors`.
        UnknownWord: a key is unknown.
        """
        return self._call(
            lambda call: _keyed_near.closer_than(call, call.word(key1), call.word(key2))
        )

    def doesnt_match(self, words: Iterable[Key]) -> Key:
        """The word that does not match the others: the one with the smallest cosine to their mean.

        Unknown words are left out. Of two words either may come. ValueError: no word is known.
        """
        listed = list(words)
        askable = [each for each in listed if isinstance(each, str) and is_askable(each)]
        if len(listed) == len(askable) >= 3:
            try:
                odd = requests.odd(askable, unknown="error", case="exact")
                return self._call(lambda call: call.ask(odd)).word
            except (UnknownWord, ZeroVector, TooLong):
                pass
        return self.rank_by_centrality(listed)[-1][1]

    def rank_by_centrality(
        self, words: Iterable[Key], use_norm: bool = True
    ) -> List[Tuple[float, Key]]:
        """Words by their dot product with the mean of all, at length 1: pairs, largest first.

        use_norm takes words at length 1, so that the products are cosines. Unknown words are left
        out. ValueError: no word is known.
        """
        listed = list(words)
        return self._call(lambda call: _keyed_near.by_centrality(call, listed, use_norm))

    def most_similar_to_given(self, key1: Key, keys_list: Sequence[Key]) -> Key:
        """The key of a list that is nearest to key1: the first of equal ones.

        UnknownWord: a key is unknown. ValueError: the list is empty.
        """
        if len(keys_list) == 0:
            raise ValueError("there is no key in the list")

        def ask(call: Call) -> List[float]:
            first = call.word(key1)
            return call.similarities([(first, word) for word in call.words(keys_list)])

        scores = self._call(ask)
        return keys_list[scores.index(max(scores))]

    def n_similarity(self, ws1: Sequence[Key], ws2: Sequence[Key]) -> float:
        """The cosine of the means of two lists of keys, whose vectors are taken as they are.

        Unknown words are left out; it is 0 if no word of a list is known. ZeroDivisionError: a
        list is empty.
        """
        if len(ws1) == 0 or len(ws2) == 0:
            raise ZeroDivisionError("one of the lists of words is empty")
        words = [each for each in (*ws1, *ws2) if isinstance(each, str) and is_askable(each)]
        if len(words) == len(ws1) + len(ws2):
            a, b = words[: len(ws1)], words[len(ws1) :]
            try:
                sim = requests.sim(a, b, unknown="skip", case="exact")
                return self._call(lambda call: call.ask(sim))
            except (UnknownWord, ZeroVector):
                return 0.0
            except TooLong:
                pass

        def ask(call: Call) -> List[Any]:
            return [call.mean(list(ws), [1.0] * len(ws), False, True) for ws in (ws1, ws2)]

        return _vectors.dot(*map(_vectors.unit, self._call(ask)))

    def relative_cosine_similarity(self, wa: Key, wb: Key, topn: int = 10) -> float:
        """The similarity of two words, over the sum of those of wa's topn neighbours.

        Leeuwenberg and others, 2016. UnknownWord: a word is unknown. ValueError: topn is below 1.
        """
        refuse_all(topn, "a number of neighbours is wanted")
        # Before a word that is unknown, as in gensim.
        if topn < 1:
            raise ValueError(f"topn is {topn}: there are no neighbours to compare with")

        def ask(call: Call) -> float:
            a, b = call.word(wa), call.word(wb)
            near = _keyed_near.nearest(call, [a], [1.0], call.k(topn), None)
            if not near:
                raise ValueError("the word has no neighbours to compare with")
            return call.similarity(a, b) / sum(score for _, score in near)

        return self._call(ask)

    # Evaluations

    def evaluate_word_analogies(
        self,
        analogies: _evaluation.Path,
        restrict_vocab: Optional[int] = 300000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
        similarity_function: str = "most_similar",
    ) -> Tuple[float, List[Dict[str, Any]]]:
        """The share of right answers to questions «a is to b as c is to expected», by 3CosAdd.

        analogies         a file like word2vec's questions-words.txt; .gz is unpacked
        restrict_vocab    ask about, and search, only that many of the most frequent words
        case_insensitive  compare in capitals, and take the most frequent of such words
        dummy4unknown     count questions with an unknown word as wrong; else they are left out

        Returns the share of all, and a dict for each section and for all: «section», its name,
        and «correct» and «incorrect», lists of (a, b, c, expected). The share is 0 if no question
        counts. gloved-eval(1) gives the same figures, but for words of mixed case, such as eBay,
        which it takes as they are written.

        ValueError: a question comes before the first section. NotImplementedError: the
        similarity_function is another one, which gensim ignores.
        """
        if similarity_function != "most_similar":
            raise NotImplementedError(
                "similarity_function= is most_similar; gloved-eval --method mul asks by 3CosMul"
            )
        top = top_of(restrict_vocab)
        read = list(_evaluation.analogies(analogies, case_insensitive))

        return with_total(
            self._call(
                lambda call: analogy_sections(call, read, top, case_insensitive, dummy4unknown)
            )
        )

    def evaluate_word_pairs(
        self,
        pairs: _evaluation.Path,
        delimiter: str = "\t",
        encoding: str = "utf8",
        restrict_vocab: Optional[int] = 300000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
    ) -> Tuple[Tuple[float, float], Tuple[float, float], float]:
        """How similarities go with people's scores of word pairs.

        pairs             a file of lines: word, word, score; .gz is unpacked. Lines that begin
                          with # are skipped; lines of another form too, with a warning
        restrict_vocab    take only that many of the most frequent words
        case_insensitive  compare in capitals, and take the most frequent of such words
        dummy4unknown     count pairs with an unknown word as similarity 0; else they are left out

        Returns Pearson's and Spearman's correlation, each with its two-tailed p-value, and the
        percentage of pairs with an unknown word. gloved-eval(1) gives the same figures, but for
        words of mixed case, such as eBay, which it takes as they are written.

        ValueError: no pair counts, or only one.
        """
        lines = _evaluation.pairs(pairs, delimiter, encoding, case_insensitive)
        top = top_of(restrict_vocab)
        similarities = self._call(
            lambda call: pair_similarities(call, lines, top, case_insensitive)
        )
        return correlations(str(pairs), lines, similarities, dummy4unknown)


def connect(
    socket: Optional[_socket.Path] = None,
    *,
    model: Optional[str] = None,
    timeout: float = 30.0,
    retries: int = 10,
    max_connections: int = 64,
) -> KeyedVectors:
    """A KeyedVectors of the daemon at a socket. The arguments are those of Client.

    It asks the daemon before it returns. ConnectionFailed: no daemon answers, for some seconds if
    retries are left. UnknownModel: the daemon does not serve the model.
    """
    client = Client(
        socket, model=model, timeout=timeout, retries=retries, max_connections=max_connections
    )
    vectors = KeyedVectors(client)
    try:
        vectors._call(Call.model)
    except BaseException:
        client.close()
        raise
    return vectors
