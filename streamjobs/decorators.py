"""What `app.job(...)` and `app.cron(...)` return, typed for every form that a handler may have."""

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from streamjobs.kind import Kind
from streamjobs.worker.context import BatchContext, Context

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class JobDecorator(Protocol):
    """What `app.job(...)` returns: makes a kind of an async or a plain function, with or without context."""

    @overload
    def __call__(self, function: Callable[Concatenate[Context[Any], P], Awaitable[R]], /) -> Kind[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context[Any], P], R], /) -> Kind[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Kind[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Kind[P, R]: ...


Results: TypeAlias = list[Any] | None
"""What a handler of several jobs returns: None, or a result or an exception for each."""


class BatchDecorator(Protocol):
    """What `app.job(batch=...)` returns: makes a kind of a function that takes a list, a job for each item."""

    @overload
    def __call__(
        self, function: Callable[[BatchContext[Any], list[T]], Awaitable[Results] | Results], /
    ) -> Kind[[T], Any]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], Awaitable[Results] | Results], /) -> Kind[[T], Any]: ...


class CronDecorator(Protocol):
    """What `app.cron(...)` and `app.every(...)` return: takes a kind, or a function that becomes one."""

    @overload
    def __call__(self, kind: Kind[P, R], /) -> Kind[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context[Any], P], Awaitable[R]], /) -> Kind[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context[Any], P], R], /) -> Kind[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Kind[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Kind[P, R]: ...
