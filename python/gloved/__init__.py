"""Nearest words by gloved, a daemon that serves word vectors.

    import gloved
    vectors = gloved.connect()
    vectors.most_similar(positive=["king", "woman"], negative=["man"], topn=3)

connect() returns KeyedVectors, which has the methods of gensim's class of that name. Client has one
method for each verb of the daemon's protocol, and AsyncClient the same for asyncio. Without a
daemon, serve() starts one for this process, and convert() makes a model of a download.
"""

from . import requests
from ._version import __version__
from .aio import AsyncClient
from .client import Client
from .errors import (
    AccessDenied,
    BadRequest,
    Busy,
    ConnectionFailed,
    Forbidden,
    GlovedError,
    Idle,
    Internal,
    ModelReplaced,
    ProgramFailed,
    Timeout,
    TooLong,
    Unavailable,
    UnknownList,
    UnknownModel,
    UnknownWord,
    ZeroVector,
)
from .keyed_vectors import KeyedVectors, connect
from .local import LocalVectors, convert, serve
from .requests import Expression
from .results import Answer, Info, Model, Neighbor, Odd, Ranked, Word, WordList

__all__ = [
    "AccessDenied",
    "Answer",
    "AsyncClient",
    "BadRequest",
    "Busy",
    "Client",
    "ConnectionFailed",
    "Expression",
    "Forbidden",
    "GlovedError",
    "Idle",
    "Info",
    "Internal",
    "KeyedVectors",
    "LocalVectors",
    "Model",
    "ModelReplaced",
    "Neighbor",
    "Odd",
    "ProgramFailed",
    "Ranked",
    "Timeout",
    "TooLong",
    "Unavailable",
    "UnknownList",
    "UnknownModel",
    "UnknownWord",
    "Word",
    "WordList",
    "ZeroVector",
    "__version__",
    "connect",
    "convert",
    "requests",
    "serve",
]
