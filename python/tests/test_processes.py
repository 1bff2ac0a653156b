"""KeyedVectors and clients that are copied, and that pools of processes and threads share."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import multiprocessing
import pickle
from concurrent import futures
from typing import Any, Callable, Iterator, List

import pytest

import gloved
from conftest import Daemon
from gloved import KeyedVectors

Map = Callable[[Callable[[str], Any], List[str]], List[Any]]

WORKERS = 2
WORDS = 1000


@contextlib.contextmanager
def multiprocessing_pool(method: str) -> Iterator[Map]:
    with multiprocessing.get_context(method).Pool(WORKERS) as pool:
        yield pool.map


@contextlib.contextmanager
def executor(kind: Callable[[int], futures.Executor]) -> Iterator[Map]:
    with kind(WORKERS) as workers:
        yield lambda ask, words: list(workers.map(ask, words))


def need(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"there is no {module} (package python3-{module})")


@contextlib.contextmanager
def joblib_processes() -> Iterator[Map]:
    need("joblib")
    import joblib
    from joblib.externals.loky import get_reusable_executor

    try:
        yield lambda ask, words: joblib.Parallel(WORKERS)(joblib.delayed(ask)(w) for w in words)
    finally:
        # They would wait for more work.
        get_reusable_executor().shutdown()


@contextlib.contextmanager
def dask_processes() -> Iterator[Map]:
    need("dask")
    import dask

    def answers(ask: Callable[[str], Any], words: List[str]) -> List[Any]:
        asked = [dask.delayed(ask)(word) for word in words]
        return list(dask.compute(*asked, scheduler="processes", num_workers=WORKERS))

    yield answers


POOLS = {
    "multiprocessing, spawn": lambda: multiprocessing_pool("spawn"),
    "multiprocessing, fork": lambda: multiprocessing_pool("fork"),
    "concurrent.futures, processes": lambda: executor(futures.ProcessPoolExecutor),
    "concurrent.futures, threads": lambda: executor(futures.ThreadPoolExecutor),
    "joblib": joblib_processes,
    "dask": dask_processes,
}


@pytest.fixture(scope="module")
def kv(daemon: Daemon) -> Iterator[KeyedVectors]:
    with gloved.connect(daemon.socket) as opened:
        yield opened


@pytest.fixture(scope="module")
def expected(kv: KeyedVectors) -> List[Any]:
    """The answers to WORDS words, by one process."""
    return list(map(kv.most_similar, kv.index_to_key[:WORDS]))


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_answers_as_one_process(
    pool: str, daemon: Daemon, kv: KeyedVectors, expected: List[Any]
) -> None:
    """Also after the daemon began again."""
    words = kv.index_to_key[:WORDS]
    half = WORDS // 2
    with POOLS[pool]() as answers:
        assert answers(kv.most_similar, words[:half]) == expected[:half]
        daemon.restart()
        assert answers(kv.most_similar, words[half:]) == expected[half:]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_clients_are_copied_as_their_options(
    daemon: Daemon, copied: Callable[[Any], Any]
) -> None:
    name = gloved.Client(daemon.socket).models()[0].model
    with gloved.Client(daemon.socket, model=name, timeout=7, retries=3) as client:
        client.ping()
        twin = copied(KeyedVectors(client))
        assert twin.similarity("king", "queen") == client.sim("king", "queen")
        with copied(client) as twin:
            assert (twin.model, twin._timeout, twin._retries) == (name, 7, 3)
            assert twin.sim("king", "queen") == client.sim("king", "queen")
    later = copied(gloved.AsyncClient(daemon.socket, model=name, connections=2))
    assert (later.model, later._connections) == (name, 2)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_a_copy_answers_after_a_restart(
    daemon: Daemon, kv: KeyedVectors, copied: Callable[[Any], Any]
) -> None:
    with copied(kv) as twin:
        assert twin.most_similar("king") == kv.most_similar("king")
        daemon.restart()
        assert twin.most_similar("king") == kv.most_similar("king")
        assert twin.index_to_key == kv.index_to_key
