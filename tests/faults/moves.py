"""Which jobs a call moves, and what became of each, read from the call as it goes over the wire."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from streamjobs.core.errors import OutcomeUnknown, StreamJobsError
from streamjobs.protocol.calls import Call, Word
from streamjobs.protocol.lanes import GO, Admission
from streamjobs.protocol.leases import Begun
from tests.faults.history import Settled


class Item(NamedTuple):
    """One job of a call."""

    job: str
    entry: str
    deliveries: int = 0
    delay_ms: int = 0


def settled(call: Call[Any], reply: Any, sent: float, at: float) -> Iterator[Settled]:
    """Yield what a call and its reply say of each job; nothing when it was definitely not done."""
    if isinstance(reply, StreamJobsError) and not isinstance(reply, OutcomeUnknown):
        return
    tag = _tag(call.keys[0])
    for index, item in enumerate(_ITEMS[call.script](call.args)):
        job = f"{tag}:{item.job}" if item.job else ""
        entry = f"{tag}:{item.entry}" if item.entry else ""
        yield Settled(at, sent, call.script, job, entry, item.deliveries, _word(reply, index), item.delay_ms)


def is_watched(request: object) -> bool:
    """Say whether a request is a call that moves jobs which are there already, or keeps or starts a claim."""
    return isinstance(request, Call) and request.script in _ITEMS


def _word(reply: Any, index: int) -> str:
    if isinstance(reply, StreamJobsError):
        return "UNSURE"
    if isinstance(reply, Mapping):
        return str(reply.get(index, "OK"))
    if isinstance(reply, Admission):
        return "OK" if reply.words[index] == GO else reply.words[index]
    word = reply[index]
    if word is None or isinstance(word, Begun):
        return "OK" if word else "LOST"
    return str(word)


def _tag(key: str) -> str:
    return key.partition("{")[2].partition("}")[0]


def _text(word: Word) -> str:
    return word.decode() if isinstance(word, bytes) else str(word)


def _item(job: Word, entry: Word, deliveries: Word = 0, delay_ms: Word = 0) -> Item:
    return Item(_text(job), _text(entry), int(deliveries), int(delay_ms))


def _complete(args: Sequence[Word]) -> Iterator[Item]:
    at = 2
    while at < len(args):
        plain, count, sums = args[at + 1] == "plain", int(args[at + 2]), int(args[at + 3])
        first, width = at + 4 + 2 * sums, 1 if plain else 7
        at = first + count * width
        for place in range(first, at, width):
            # A plain success is one of a job whose id is its entry.
            yield _item(args[place if plain else place + 1], args[place])


def _groups(args: Sequence[Word], at: int, width: int) -> Iterator[Sequence[Word]]:
    while at < len(args):
        count, sums = int(args[at + 1]), int(args[at + 2])
        first = at + 3 + 2 * sums
        at = first + count * width
        yield from (args[place : place + width] for place in range(first, at, width))


def _rows(args: Sequence[Word], at: int, width: int) -> Iterator[Sequence[Word]]:
    yield from (args[place : place + width] for place in range(at, len(args), width))


def _admitted(args: Sequence[Word]) -> Iterator[Item]:
    at = 3 + 2 * int(args[2])
    while at < len(args):
        yield _item("", *args[at : at + 2])
        at += 6 + int(args[at + 5])


def _postponed(args: Sequence[Word]) -> Iterator[Item]:
    return (_item(row[2], row[0], row[1], row[3]) for row in _groups(args, 2, 6))


_ITEMS: dict[str, Callable[[Sequence[Word]], Iterator[Item]]] = {
    "complete": _complete,
    "retry": _postponed,
    "snooze": _postponed,
    "bury": lambda args: (_item(row[2], row[0], row[1]) for row in _groups(args, 3, 11)),
    "cancel": lambda args: (_item(*row[:3]) for row in _rows(args, 3, 7)),
    "release": lambda args: (_item("", *row[:2]) for row in _rows(args, 2, 4)),
    "renew": lambda args: (_item(row[2], *row[:2]) for row in _rows(args, 1, 4)),
    "start": lambda args: (_item(row[2], *row[:2]) for row in _rows(args, 1, 4)),
    "admit": _admitted,
    "suspect": lambda args: (_item("", *row[:2]) for row in _rows(args, 2, 3)),
    "replay": lambda args: (_item(row[1], "") for row in _rows(args, 1, 7)),
    "purge": lambda args: (_item(row[1], "") for row in _rows(args, 1, 3)),
}
