"""Conversations: generators that yield requests and are sent the replies.

What takes several requests is written once this way, and driven by the sync executor or the
asyncio one.
"""

import asyncio
import time
from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.sync import SyncExecutor
from streamjobs.core.errors import StreamJobsError
from streamjobs.protocol.calls import Request

T = TypeVar("T")


class Pause(msgspec.Struct, frozen=True):
    """A step that only waits."""

    seconds: float


class Leniently(list[Request[Any]]):
    """Requests whose errors are sent to the conversation in the place of replies, for it to judge."""


Talk: TypeAlias = Generator[list[Request[Any]] | Pause, list[Any], T]
"""Yields requests that can go in one round trip, and is sent their replies, of which none is an error
(but see `Leniently`); or a pause. Closed when it is interrupted under way."""


def talk(executor: SyncExecutor, conversation: Talk[T]) -> T:
    """Carry a conversation through; the first error ends it."""
    try:
        step = next(conversation)
        while True:
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                step = conversation.send([])
            else:
                step = conversation.send(_checked(step, executor.run_all(step)))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        conversation.close()


async def atalk(executor: AsyncExecutor, conversation: Talk[T]) -> T:
    """Carry a conversation through; the first error ends it."""
    try:
        step = next(conversation)
        while True:
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                step = conversation.send([])
            else:
                step = conversation.send(_checked(step, await executor.run_all(step)))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        conversation.close()


def _checked(requests: list[Request[Any]], replies: list[Any]) -> list[Any]:
    for reply in replies:
        if isinstance(reply, StreamJobsError) and not isinstance(requests, Leniently):
            raise reply
    return replies
