"""Conversations carried through step by step, so that something can happen in between."""

from collections.abc import Callable
from typing import Any, TypeVar

from streamjobs.client.sync import SyncExecutor
from streamjobs.client.talk import Talk
from streamjobs.protocol.calls import Call, Request

T = TypeVar("T")


def driven(executor: SyncExecutor, conversation: Talk[T], before: Callable[[list[Request[Any]]], None]) -> T:
    """Carry a conversation through without its pauses; `before` is called with the requests of each step.

    Raises:
        whatever the conversation raises, at what it is sent.
    """
    step = next(conversation)
    try:
        while True:
            requests = step if isinstance(step, list) else []
            before(requests)
            step = conversation.send(executor.run_all(requests))
    except StopIteration as end:
        result: T = end.value
        return result


def calls(requests: list[Request[Any]], script: str) -> bool:
    """Say whether one of these requests is a call of this script."""
    return any(isinstance(one, Call) and one.script == script for one in requests)
