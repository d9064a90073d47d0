"""How a server is asked to confirm what a connection has just written: by its replicas, or on its disk.

Either command speaks of all that its own connection wrote before it, so it goes right behind a batch.
"""

from typing import Any

from streamjobs.core.durability import Durability
from streamjobs.core.errors import OutcomeUnknown, Rejected, StreamJobsError, Unavailable
from streamjobs.protocol.calls import Command, Word
from streamjobs.protocol.server import DENIED


def confirm(level: Durability, wait_ms: int) -> Command[None]:
    """Wait on the server, at least 1 ms, until what the request before it wrote is where the level wants it.

    Its decoding raises OutcomeUnknown where too few have confirmed in that time.
    """

    # 0 would mean to wait for ever.
    wait_ms = max(1, wait_ms)

    def decode(raw: Any) -> None:
        count = int(raw if level.replicas else raw[0])
        if count < level.wanted:
            who = f"{count} of {level.replicas} replicas have" if level.replicas else "its disk has not"
            raise OutcomeUnknown(f"the server has the job, but {who} confirmed it in time")

    return Command(_words(level, level.wanted, wait_ms), decode, follows=True)


def probe(level: Durability) -> Command[None]:
    """Ask whether the server can confirm at all; it answers at once, in 1 ms at most."""
    return Command(_words(level, 0 if level.replicas else 1, 1), lambda raw: None)


def unable(level: Durability, error: StreamJobsError) -> StreamJobsError:
    """Return the error for a server that cannot confirm, where `error` is what it answered to the probe."""
    if isinstance(error, OutcomeUnknown):
        # Whatever became of the probe: the jobs were not sent.
        return Unavailable(str(error), word="CONNECT")
    if not isinstance(error, Rejected):
        return error
    name = f"durability='replicas:{level.replicas}'" if level.replicas else "durability='fsync'"
    command = "WAIT" if level.replicas else "WAITAOF"
    if "appendonly" in str(error):
        advice = "its append-only file is off: set appendonly yes there, or use durability='memory'"
    elif error.word == "NOPERM":
        advice = f"its user may not use {command}: allow +{command.lower()}, or use durability='memory'"
    elif error.word in DENIED:
        advice = f"it has no {command}: use Redis 7.2 or later, or Valkey" if not level.replicas else "it has no WAIT"
    else:
        return error
    return Rejected(f"{name}: nothing was enqueued, {advice} ({error})", word=error.word)


def unconfirmed(error: StreamJobsError) -> OutcomeUnknown:
    """Return the error for a batch that was taken, where `error` is what came of asking to confirm it."""
    if isinstance(error, OutcomeUnknown):
        return error
    return OutcomeUnknown(f"the server has the job, but cannot confirm it: {error}")


def _words(level: Durability, count: int, wait_ms: int) -> list[Word]:
    return ["WAIT", count, wait_ms] if level.replicas else ["WAITAOF", count, 0, wait_ms]
