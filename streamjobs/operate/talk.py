"""Conversations: generators that yield requests and are sent the replies.

What takes several requests is written once this way, and driven by the sync executor or the
asyncio one.
"""

from collections.abc import Generator
from typing import Any, TypeVar

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.sync import SyncExecutor
from streamjobs.core.errors import StreamJobsError
from streamjobs.protocol.calls import Request

T = TypeVar("T")

Talk = Generator[list[Request[Any]], list[Any], T]
"""Yields requests that can go in one round trip; is sent their replies, of which none is an error
(but see `Leniently`)."""


class Leniently(list[Request[Any]]):
    """Requests whose errors are sent to the conversation in the place of replies, for it to judge."""


def talk(executor: SyncExecutor, conversation: Talk[T]) -> T:
    """Carry a conversation through; the first error ends it."""
    try:
        requests = next(conversation)
        while True:
            requests = conversation.send(_checked(requests, executor.run_all(requests)))
    except StopIteration as end:
        result: T = end.value
        return result


async def atalk(executor: AsyncExecutor, conversation: Talk[T]) -> T:
    """Carry a conversation through; the first error ends it."""
    try:
        requests = next(conversation)
        while True:
            requests = conversation.send(_checked(requests, await executor.run_all(requests)))
    except StopIteration as end:
        result: T = end.value
        return result


def _checked(requests: list[Request[Any]], replies: list[Any]) -> list[Any]:
    for reply in replies:
        if isinstance(reply, StreamJobsError) and not isinstance(requests, Leniently):
            raise reply
    return replies
