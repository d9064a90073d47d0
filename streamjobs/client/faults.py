"""What both executors know without doing any I/O: a request's bytes, and what became of it.

A round is a list of requests sent together. Each gets one item in the list of its outcomes: the
reply, the server's error, or `Lost` when the reply never came. From these follow the requests to
repeat (the server did not know the script) and the final outcomes.
"""

import os
import re
import ssl
from collections.abc import Sequence
from typing import Any, TypeVar

import hiredis
import redis
from redis.exceptions import NoScriptError

from streamjobs.core.errors import OutcomeUnknown, Rejected, StreamJobsError, Unavailable
from streamjobs.protocol import scripts
from streamjobs.protocol.calls import Call, Request, Word
from streamjobs.protocol.replies import Fate, fate, word

T = TypeVar("T")

FAILURES = (redis.RedisError, OSError)
"""What the driver raises for a connection that cannot be made, or that breaks."""
ASYNC_FAILURES = (*FAILURES, RuntimeError)
"""Likewise over asyncio: `RuntimeError` is what uvloop says of a connection that the other side has just closed."""

GREETING: tuple[Word, ...] = ("CLIENT", "SETNAME", "streamjobs")
"""The first request on a new connection. It changes nothing, so that what fails while it is under way
(a proxy without a server behind it, a wrong password) has certainly not executed anything."""


_ADVICE = {
    "WRONGPASS": "check user and password in the URL, redis://USER:PASSWORD@HOST",
    "NOAUTH": "write its password into the URL, redis://:PASSWORD@HOST",
    "NOPERM": "give the URL's user this right, or name another user",
    "WRONGTYPE": "a key of this namespace holds something else: use another namespace, or remove that key",
    "OOM": "free memory there or raise its maxmemory; workers go on",
}
"""What to do about a reply, by its word."""
_UNREADABLE = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)
"""What decoding raises of a reply that is not as it should be."""
_BEFORE = re.compile(r"^(?:ERR )?Error running script \(.*?\): @\w+: ?\d+: -?")
_BEHIND = re.compile(r"\.? script: \S+, on @\w+:\d+\.?$")


class Lost(Exception):
    """The line broke before this request's reply was read; `cause` says how."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


def name(request: Request[Any]) -> str:
    """Return what a message calls this request: the script, or the command's first word."""
    if isinstance(request, Call):
        return request.script
    first = request.words[0]
    return first.decode("ascii", "replace") if isinstance(first, bytes) else str(first)


def pack(*words: Word) -> bytes:
    """Return one request as it goes over the wire."""
    packed: bytes = hiredis.pack_command(words)  # type: ignore[arg-type]
    return packed


def packed(request: Request[Any]) -> bytes:
    """Return the request's bytes; a script is called by its hash."""
    if isinstance(request, Call):
        script = scripts.load(request.script)
        return pack("EVALSHA", script.sha, len(request.keys), *request.keys, *request.args)
    return pack(*request.words)


def text(error: BaseException) -> str | None:
    """Return the reply that this error of the driver was, or None if it was no reply.

    The driver turns some replies into connection errors (`LOADING`, a wrong password) and takes the
    first word of those that it knows off their text.
    """
    if not isinstance(error, redis.ResponseError | redis.ConnectionError):
        return None
    code = error.status_code
    if code is None:
        return str(error) if isinstance(error, redis.ResponseError) else None
    return f"{code} {error}"


def welcome(reply: Any) -> None:
    """Raise the error with which the server ends a connection; a greeting refused otherwise is no harm."""
    if isinstance(reply, redis.ConnectionError):
        raise reply
    if isinstance(reply, redis.ResponseError) and word(str(reply)) in {"DENIED", "MAXCLIENTS"}:
        raise reply


def refused(reply: str, what: str, where: str) -> Rejected | Unavailable:
    """Return the error for a request that the server answered by an error."""
    kind = word(reply)
    # An unknown command is answered with its first arguments, which may be a job's body.
    shown = reply.partition(", with args beginning with")[0]
    advice = _ADVICE.get(kind, "")
    if "db index is out of range" in reply.lower():
        advice = "choose a database that the server has, redis://HOST/0"
    if advice:
        # Where in a script it happened helps only with faults of the script.
        shown = f"{_BEHIND.sub('', _BEFORE.sub('', shown)).rstrip('.')}; {advice}"
    message = f"{where} refuses {what}: {shown}"
    if fate(kind) is Fate.NOT_EXECUTED:
        return Unavailable(message, word=kind)
    return Rejected(message, word=kind)


def unconnected(error: Exception, where: str) -> StreamJobsError:
    """Return the error for requests that could not be sent, since connecting failed."""
    if isinstance(error, StreamJobsError):
        return error
    result: Rejected | Unavailable
    reply = text(error)
    if reply is None and error.__cause__ is not None:
        # The asyncio driver wraps the reply to a wrong password in an error of its own.
        reply = text(error.__cause__)
    if reply is not None:
        result = refused(reply, "to connect", where)
    elif isinstance(origin := _origin(error), ssl.SSLCertVerificationError):
        advice = "name the authority that signed its certificate with ssl_ca_certs=FILE"
        result = Rejected(f"{where} is not who it should be: {origin.verify_message}; {advice}", word="CERTIFICATE")
    elif isinstance(error, redis.InvalidResponse):
        result = Rejected(f"{where} is not a Redis server: {error}", word="PROTOCOL")
    else:
        doubt = "; does it speak TLS at this port?" if _failed_tls(error, where) else ""
        result = Unavailable(f"cannot reach {where}: {_reason(error)}{doubt}", word="CONNECT")
    result.__cause__ = error
    return result


def _failed_tls(error: BaseException, where: str) -> bool:
    """Say whether a handshake may have failed since the other side answered otherwise, or not at all."""
    causes = ssl.SSLError | TimeoutError | ConnectionResetError | redis.TimeoutError
    return where.startswith(("rediss://", "valkeys://")) and (
        isinstance(error, causes) or isinstance(_origin(error), causes)
    )


def _reason(error: BaseException) -> str:
    """Return the system's own words for a failure, without the driver's account of them."""
    origin = _origin(error)
    if isinstance(origin, OSError) and not isinstance(origin, ssl.SSLError) and origin.errno is not None:
        return os.strerror(origin.errno) if origin.errno > 0 else str(origin.strerror)
    return str(error) or "no answer in time"


def _origin(error: BaseException) -> BaseException:
    """Return the system's error that the driver has made its own of; no further, for behind that may be
    what the caller is just handling.
    """
    behind = error.__cause__ or error.__context__
    return behind if isinstance(behind, OSError) and not isinstance(error, OSError) else error


def troubled(replies: Sequence[Any]) -> bool:
    """Say whether any reply is an error, or is missing: else there is nothing more to look for."""
    return any(isinstance(reply, Exception) for reply in replies)


def broken(replies: Sequence[Any]) -> bool:
    """Say whether the line broke before all had come."""
    return any(isinstance(reply, Lost) for reply in replies)


def demoted(replies: Sequence[Any]) -> bool:
    """Say whether the server has become a replica. After a failover that leaves it up, its connections stay open
    for ever, while new ones may lead to the new primary.
    """
    errors = [reply for reply in replies if isinstance(reply, Exception) and not isinstance(reply, Lost)]
    return any(word(text(error) or "") == "READONLY" for error in errors)


def unloaded(requests: Sequence[Request[Any]], replies: Sequence[Any]) -> list[int]:
    """Return which calls were not executed since the server did not know their script, and what follows them."""
    if broken(replies):
        return []
    missing: list[int] = []
    for i, (request, reply) in enumerate(zip(requests, replies, strict=True)):
        if isinstance(request, Call):
            again = isinstance(reply, NoScriptError)
        else:
            again = request.follows and i - 1 in missing[-1:]
        if again:
            missing.append(i)
    return missing


def reload(requests: Sequence[Request[Any]], missing: Sequence[int]) -> list[bytes]:
    """Return the bytes of a second round: each missing script's text, then its request again."""
    parts: list[bytes] = []
    for request in (requests[i] for i in missing):
        if isinstance(request, Call):
            parts.append(pack("SCRIPT", "LOAD", scripts.load(request.script).text))
        parts.append(packed(request))
    return parts


def reloaded(
    requests: Sequence[Request[Any]], replies: list[Any], missing: Sequence[int], second: Sequence[Any]
) -> list[Any]:
    """Return the replies with those of the second round in place.

    Where loading was refused, that is the error to show: the call's own is then NOSCRIPT again.
    """
    rest = iter(second)
    for i in missing:
        loading = next(rest) if isinstance(requests[i], Call) else None
        reply = next(rest)
        unknown = isinstance(reply, NoScriptError) and isinstance(loading, Exception)
        replies[i] = loading if unknown else reply
    return replies


def outcomes(requests: Sequence[Request[T]], replies: Sequence[Any], where: str) -> list[T | StreamJobsError]:
    """Return each request's decoded reply, or the error that says what became of it."""
    results: list[T | StreamJobsError] = []
    for request, reply in zip(requests, replies, strict=True):
        result = _outcome(request, reply, where)
        results.append(result)
    return results


def _outcome(request: Request[T], reply: Any, where: str) -> T | StreamJobsError:
    result: StreamJobsError
    if isinstance(reply, Lost):
        why = _reason(reply.cause)
        result = OutcomeUnknown(f"no reply to {name(request)} from {where}: {why}")
        result.__cause__ = reply.cause
        return result
    if isinstance(reply, Exception):
        result = refused(text(reply) or str(reply), name(request), where)
        result.__cause__ = reply
        return result
    try:
        return request.decode(reply)
    except StreamJobsError as error:
        return error
    except _UNREADABLE as error:
        # Not the reply itself: it may be a job's.
        why = f"{where} answers {name(request)} with something else than it should ({type(error).__name__})"
        result = Rejected(
            f"{why}; a key of this namespace holds what others wrote: see streamjobs doctor", word="REPLY"
        )
        result.__cause__ = error
        return result
