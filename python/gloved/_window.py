"""The requests of AsyncClient.ask_all, and its calls, a limited number ahead of the answers."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, AsyncIterable, AsyncIterator, Callable, Deque, Iterable, Optional, Tuple

from ._dispatcher import Call, Progress
from ._retry import Asked, KeepsError
from ._wire import Request


class Window:
    """The calls of an ask_all, oldest first. A request that is not repeatable runs alone."""

    def __init__(
        self, begin: Callable[[Request[Any], Optional[Progress]], Call], size: int
    ) -> None:
        self._begin = begin
        self._size = size
        self._calls: Deque[Call] = deque()
        self._held: Optional[Request[Any]] = None
        self._progress = Progress()

    def has_room(self) -> bool:
        return self._held is None and len(self._calls) < self._size

    def add(self, request: Request[Any]) -> None:
        self._held = request
        self._begin_held()

    def _begin_held(self) -> None:
        request = self._held
        if request is not None and (
            not self._calls or (request.repeatable and self._calls[-1].request.repeatable)
        ):
            self._held = None
            self._calls.append(self._begin(request, self._progress))

    def oldest(self) -> Optional[Call]:
        return self._calls[0] if self._calls else None

    def remove_oldest(self) -> None:
        self._calls.popleft()
        self._progress.answers += 1
        self._begin_held()

    def cancel(self) -> None:
        for call in self._calls:
            call.future.cancel()
        self._calls.clear()


class Source:
    """The requests of an iterable."""

    def __init__(self, asked: Iterable[Request[Any]]) -> None:
        self._asked = Asked(iter(asked))

    async def fill(self, window: Window) -> None:
        """Adds requests to the window while it has room for them."""
        while window.has_room():
            request = self._asked.peek()
            if request is None:
                return
            self._asked.pop()
            window.add(request)

    def raise_error(self) -> None:
        """Raises the error that ended the requests, if one did."""
        self._asked.raise_error()

    async def close(self) -> None:
        pass


class AsyncSource(KeepsError):
    """The requests of an asynchronous iterable, which may take its time for each."""

    def __init__(self, asked: AsyncIterable[Request[Any]]) -> None:
        self._iterator: Optional[AsyncIterator[Request[Any]]] = asked.__aiter__()
        self._next: Optional[asyncio.Future[Request[Any]]] = None

    async def fill(self, window: Window) -> None:
        """Adds requests while the window has room for them and its oldest call has no answer."""
        while self._iterator is not None and window.has_room():
            if self._next is None:
                self._next = asyncio.ensure_future(self._iterator.__anext__())
            oldest = window.oldest()
            if not self._next.done():
                awaited: Tuple[asyncio.Future[Any], ...] = (self._next,)
                if oldest is not None:
                    awaited += (oldest.future,)
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not self._next.done():
                return
            self._take(window)

    def _take(self, window: Window) -> None:
        done, self._next = self._next, None
        assert done is not None
        # It is not raised here, or it would keep this frame, and with it the task.
        error = done.exception()
        if error is None:
            window.add(done.result())
            return
        self._iterator = None
        if not isinstance(error, StopAsyncIteration):
            self._error = error

    async def close(self) -> None:
        """Ends the task that waits for the next request."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait((self._next,))
            if not self._next.cancelled():
                self._next.exception()
