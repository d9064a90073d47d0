"""What the tests of dedupe share: a kind whose runs note what they were given, and a look at the keys."""

import asyncio
from typing import Any

from streamjobs import Context, StreamJobs
from tests.worker.support import Flag, Queue


def dedupe_keys(queue: Queue) -> dict[str, int]:
    """Return what there is of dedupe keys and newer arguments, each with its TTL in ms."""
    found = queue.command("KEYS", f"{queue.keys.base}*".replace("{", "\\{").replace("}", "\\}"))
    names = [key.decode() for key in found]
    return {
        name.removeprefix(queue.keys.base): queue.command("PTTL", name)
        for name in names
        if name.startswith((queue.keys.dedupe(""), queue.keys.latest))
    }


class Versions:
    """A kind whose runs note their arguments and keys, and wait until they are let go."""

    def __init__(self, app: StreamJobs, mode: Any, **options: Any) -> None:
        self.seen: list[Any] = []
        self.keys: list[str] = []
        self.started, self.go_on = Flag(), asyncio.Event()
        self.then: BaseException | None = None

        async def sync(ctx: Context[Any], version: Any, site: str = "a") -> Any:
            self.seen.append(version)
            self.keys.append(ctx.idempotency_key)
            self.started.raise_()
            await self.go_on.wait()
            then, self.then = self.then, None
            if then:
                raise then
            return version

        self.kind = app.job(name="sync", dedupe=mode, **options)(sync)
