"""What replies to `Leniently` sent requests are worth."""

from typing import Any

from streamjobs.core.errors import Rejected, StreamJobsError, Unavailable


def must(reply: Any) -> Any:
    """Return a reply.

    Raises:
        StreamJobsError: it is none.
    """
    if isinstance(reply, StreamJobsError):
        raise reply
    return reply


def of_wrong_type(reply: Any) -> bool:
    """Say whether the server answers that a key holds something else than it should."""
    return isinstance(reply, Rejected) and reply.word == "WRONGTYPE"


def counted(reply: Any) -> Any:
    """Return a hash of counters; an empty one where somebody else has put something else: nothing is counted there.

    Raises:
        StreamJobsError: it is none, for another reason.
    """
    return {} if of_wrong_type(reply) else must(reply)


def or_else(reply: Any, instead: Any) -> Any:
    """Return a reply; `instead` where the server says that the stream, or the group, is not there yet.

    Raises:
        StreamJobsError: it says anything else.
    """
    match reply:
        case Unavailable(word="NOGROUP"):
            return instead
        case Rejected() if "no such key" in str(reply).lower():
            return instead
    return must(reply)
