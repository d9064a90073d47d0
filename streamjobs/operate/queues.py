"""Stop queues and let them go on."""

from streamjobs.client.talk import Talk
from streamjobs.core.errors import NotFound
from streamjobs.protocol import upkeep, views
from streamjobs.protocol.keys import QueueKeys


def pause(namespace: str, queue: str) -> Talk[bool]:
    """Let no job of a queue start until it is resumed; False if it was paused already.

    It holds from this moment on, for workers of every version. Jobs that run go on; a worker still starts
    what it has read ahead, for at most its `read_ahead`. Jobs are enqueued and promoted as before.

    Raises:
        NotFound: there is no such queue.
    """
    keys = yield from _known(namespace, queue)
    [changed] = yield [upkeep.pause(keys)]
    return bool(changed)


def resume(namespace: str, queue: str) -> Talk[bool]:
    """Let the jobs of a queue start again; False if it was not paused.

    Raises:
        NotFound: there is no such queue.
    """
    keys = yield from _known(namespace, queue)
    [changed] = yield [upkeep.resume(keys)]
    return bool(changed)


def _known(namespace: str, queue: str) -> Talk[QueueKeys]:
    [known] = yield [views.queue_names(namespace)]
    if queue not in known:
        raise NotFound(f"queue {queue}: there is none in namespace {namespace}{views.there_are(known)}")
    return QueueKeys(namespace, queue)
