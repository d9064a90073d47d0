"""Find queues, stop them and let them go on."""

from collections.abc import Callable, Sequence

from streamjobs.client.talk import Leniently, Talk
from streamjobs.core.errors import NotFound, StreamJobsError
from streamjobs.protocol import inspect, upkeep, views
from streamjobs.protocol.calls import Call
from streamjobs.protocol.keys import QueueKeys, types


def pause(namespace: str, queue: str) -> Talk[bool]:
    """Let no job of a queue start until it is resumed; False if it was paused already.

    It holds from this moment on, for workers of every version. Jobs that run go on; a worker still starts
    what it has read ahead, for at most its `read_ahead`. Jobs are enqueued and promoted as before.

    Raises:
        NotFound: there is no such queue.
    """
    return _change(namespace, queue, upkeep.pause)


def resume(namespace: str, queue: str) -> Talk[bool]:
    """Let the jobs of a queue start again; False if it was not paused.

    Raises:
        NotFound: there is no such queue.
    """
    return _change(namespace, queue, upkeep.resume)


def _change(namespace: str, queue: str, call: Callable[[QueueKeys], Call[bool]]) -> Talk[bool]:
    keys = yield from known(namespace, queue)
    [changed] = yield [call(keys)]
    return bool(changed)


def known(namespace: str, queue: str) -> Talk[QueueKeys]:
    """Return the keys of a queue that is there.

    Raises:
        NotFound: there is no such queue.
    """
    [name] = yield from several(namespace, [queue])
    return QueueKeys(namespace, name)


def several(namespace: str, queues: Sequence[str]) -> Talk[list[str]]:
    """Return the names of these queues, or of all if none was named.

    Raises:
        NotFound: one of them is not there.
    """
    [names] = yield [views.queue_names(namespace)]
    for queue in queues:
        if queue not in names and not (yield from _holds_any(QueueKeys(namespace, queue))):
            raise no_queue(namespace, queue, names)
    return list(queues) or list(names)


def _holds_any(keys: QueueKeys) -> Talk[bool]:
    """Say whether a queue that nobody has listed has jobs: somebody has added one by a plain XADD."""
    found = yield Leniently(inspect.type_of(key) for key in (keys.stream, keys.dead, keys.scheduled))
    return any(not isinstance(type_, StreamJobsError) and type_ != "none" for type_ in found)


def wrong_keys(namespace: str, queues: Sequence[str]) -> Talk[dict[str, str]]:
    """Return the queues of which jobs cannot be listed, each with the key that is of a wrong type."""
    asks = [(name, key) for name in queues for key in _lists(QueueKeys(namespace, name))]
    replies = yield Leniently(inspect.type_of(key) for _, key in asks)
    right = [types(QueueKeys(namespace, name))[key] for name, key in asks]
    # Who may not ask finds out where it is read.
    found = [not isinstance(type_, StreamJobsError) and type_ not in ("none", fit)
             for type_, fit in zip(replies, right, strict=True)]  # fmt: skip
    return {name: key for (name, key), wrong in zip(asks, found, strict=True) if wrong}


def _lists(keys: QueueKeys) -> list[str]:
    return [keys.stream, keys.scheduled, keys.retries, keys.bodies, keys.config]


def no_queue(namespace: str, queue: str, names: Sequence[str]) -> NotFound:
    """Return the error that says which queues there are instead."""
    return NotFound(f"queue {queue}: there is none in namespace {namespace}{there_are(names)}")


def there_are(names: Sequence[str]) -> str:
    """Return the end of a message about a name that is not among these."""
    return f"; there are {', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else ""
