"""How a function of gloved.requests becomes a method of a client."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar

M = TypeVar("M", bound=Callable[..., Any])

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


def describe(method: M, build: Callable[..., Any]) -> M:
    """Gives the method the name, the docstring and, after self, the parameters of the function.

    It returns T where the function returns Request[T].
    """
    functools.update_wrapper(method, build)
    signature = inspect.signature(build)
    returned = str(signature.return_annotation).partition("[")[2][:-1]
    # Without a signature of its own, help() would take the first parameter for self.
    signature = signature.replace(
        parameters=[_SELF, *signature.parameters.values()], return_annotation=returned
    )
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__annotations__ = {**build.__annotations__, "return": returned}
    return method
