"""What the tests of batch handlers share: a kind that notes its calls."""

import asyncio
from dataclasses import dataclass
from typing import Any

from streamjobs import (
    Batch,
    BatchContext,
    Kind,
    Retry,
    StreamJobs,
)
from tests.worker.support import WITHIN_S, Flag, Queue, pause

FOR_EVER = 60.0
"""A wait for others that no test sees the end of."""
ONCE = Retry(max_attempts=1)


@dataclass
class Doc:
    n: int
    title: str = ""


class Index:
    """A batch kind that notes what its calls get, and answers with `answer` where that is set."""

    def __init__(self, app: StreamJobs, batch: Batch, **options: Any) -> None:
        self.calls: list[list[int]] = []
        self.attempts: list[list[int]] = []
        self.contexts: list[BatchContext[Any]] = []
        self.started = Flag()
        self.answer: Any = None

        async def index(ctx: BatchContext[Any], docs: list[Doc]) -> Any:
            self.calls.append([doc.n for doc in docs])
            self.attempts.append([job.attempt for job in ctx.jobs])
            self.contexts.append(ctx)
            self.started.raise_()
            answer = self.answer
            if callable(answer):
                answer = answer(ctx, docs)
                if asyncio.iscoroutine(answer):
                    answer = await answer
            return answer

        self.kind: Kind[[Doc], Any] = app.job(name="index", batch=batch, **options)(index)

    async def enqueue(self, app: StreamJobs, count: int) -> list[Any]:
        return await app.enqueue_many(self.kind.call(Doc(n)) for n in range(count))


async def claimed(queue: Queue, count: int) -> None:
    """Wait until so many jobs are claimed."""
    async with asyncio.timeout(WITHIN_S):
        while len(queue.pending()) < count:
            await pause(0.01)
