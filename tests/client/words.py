"""Requests that tests of the client send: plain commands, with the reply as it came."""

from typing import Any

from streamjobs.protocol.calls import Command, Word


def command(*words: Word) -> Command[Any]:
    """Return a command whose decoded reply is the raw one."""
    return Command(words, raw)


def raw(reply: Any) -> Any:
    """Return the reply itself."""
    return reply
