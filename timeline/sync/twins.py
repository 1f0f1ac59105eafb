"""Make blocking twins of asynchronous methods, with the same name, signature and docstring: for `timeline.sync`.

No body is written twice: a twin only passes the call to the event loop of its store.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from contextlib import suppress
from functools import partial, wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar, cast, overload

import anyio.to_thread

from timeline.errors import InvalidArgument, StoreClosed
from timeline.home import Home

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from timeline.sync.loop_thread import LoopThread

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
S = TypeVar("S")
F = TypeVar("F", bound="Callable[..., Any]")

_END: Final[Any] = object()


class Method(Protocol[P, R_co]):
    """A function in a class, which binds its first argument.

    It says so to type checkers: some of them bind no `Callable` that an attribute of a class holds (ty, pyrefly).
    """

    def __call__(self, twin: Any, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it with the object."""
        ...

    @overload
    def __get__(self, twin: None, kind: type, /) -> Self: ...
    @overload
    def __get__(self, twin: object, kind: type, /) -> Callable[P, R_co]: ...


class Asking(Protocol[A_co, P]):
    """A bound `AskingMethod`."""

    def __call__(self, function: Callable[[A_co], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the function does."""
        ...


class AskingMethod(Protocol[A_co, P]):
    """A `Method` that takes a function and returns what that one returns."""

    def __call__(self, twin: Any, function: Callable[[A_co], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it with the object."""
        ...

    @overload
    def __get__(self, twin: None, kind: type, /) -> Self: ...
    @overload
    def __get__(self, twin: object, kind: type, /) -> Asking[A_co, P]: ...


class Twin:
    """A blocking wrapper of an asynchronous object, whose calls run in the loop behind ``portal``."""

    def __init__(self, portal: LoopThread, inner: Any) -> None:
        self._loop_thread = portal
        self._home = Home(f"this {type(self).__name__} of timeline.sync")
        self._inner = inner

    def __repr__(self) -> str:
        return f"{self._inner!r}, without await"

    @property
    def _portal(self) -> LoopThread:
        """The way into the loop.

        Raises:
            ForkedProcess: the loop's thread is in the process that this one was forked from.
        """
        self._home.check_process()
        return self._loop_thread


def plain_events(stream: Any) -> None:
    """Check that a value is a stream that ``for`` reads, as `timeline.sync` does."""
    if not isinstance(stream, Iterable):
        cure = "take the SDK's blocking client, or the library without timeline.sync for an asynchronous stream"
        raise InvalidArgument(
            "stream", f"must be a stream for `for`, not an object of type {type(stream).__name__}; {cure}"
        )


def answered(answer: Any) -> Any:
    """Return the answer of an application's function, which is an ordinary one under `timeline.sync`.

    Raises:
        TypeError: it is a coroutine, which nobody would await.
    """
    if isawaitable(answer):
        if isinstance(answer, Coroutine):
            answer.close()
        raise TypeError("timeline.sync takes an ordinary function here, and this one is async: define it with `def`")
    return answer


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Method[P, R]:
    """Make the twin of a coroutine method."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", self._portal.call(partial(getattr(self._inner, method.__name__), *args, **kwargs)))

    return cast("Method[P, R]", call)


def calling(
    method: Callable[Concatenate[Any, Callable[[A], Awaitable[Any]], P], Coroutine[Any, Any, Any]],
) -> AskingMethod[A, P]:
    """Make the twin of a method that takes an asynchronous function; the twin takes an ordinary one.

    The function runs in a thread of its own, so that the loop can serve other threads and the function meanwhile.
    """

    @wraps(method)
    def call(self: Any, function: Callable[[A], Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        if not callable(function):
            raise InvalidArgument("call", f"must be a function of a context, not of type {type(function).__name__}")

        async def in_thread(argument: A) -> Any:
            return answered(await anyio.to_thread.run_sync(function, argument))

        return self._portal.call(partial(getattr(self._inner, method.__name__), in_thread, *args, **kwargs))

    return cast("AskingMethod[A, P]", call)


def like(method: Callable[..., Any]) -> Callable[[F], F]:
    """Give a hand-written twin the docstring of its method; to a type checker it keeps the signature that it has."""

    def described(twin: F) -> F:
        return cast("F", wraps(method)(twin))

    return described


def twin_of_function(function: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a hand-written twin the signature and the docstring of its function."""

    def described(twin: Callable[..., R]) -> Callable[P, R]:
        return cast("Callable[P, R]", wraps(function)(twin))

    return described


def twin_of_method(
    method: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[Concatenate[S, ...], R]], Callable[Concatenate[S, P], R]]:
    """Give a hand-written twin the signature and the docstring of its method, but for the first parameter.

    That one is the twin's own: ``self``, or a store of `timeline.sync`.
    """

    def described(twin: Callable[Concatenate[S, ...], R]) -> Callable[Concatenate[S, P], R]:
        return cast("Callable[Concatenate[S, P], R]", wraps(method)(twin))

    return described


def iterating(method: Callable[Concatenate[Any, P], AsyncIterator[R]]) -> Method[P, Iterator[R]]:
    """Make the twin of an asynchronous iterator method."""

    @wraps(method)
    def iterate(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return _iterate(self, getattr(self._inner, method.__name__)(*args, **kwargs))

    return cast("Method[P, Iterator[R]]", iterate)


def _iterate(twin: Twin, items: AsyncIterator[R]) -> Iterator[R]:
    try:
        while (item := twin._portal.call(_next, items)) is not _END:  # noqa: SLF001 - a function of this module
            yield item
    finally:
        if (aclose := getattr(items, "aclose", None)) is not None:
            with suppress(StoreClosed, RuntimeError):  # the store was closed first, and with it the iterator; or a fork
                twin._portal.call(aclose)  # noqa: SLF001 - as above


async def _next(items: AsyncIterator[R]) -> R:
    return await anext(items, _END)
