"""Large numbers: what they leave behind, and what they cost those who look for something among them."""

import signal

import pytest

from streamjobs.protocol.keys import describe
from tests.faults.field import NAMESPACE, Field
from tests.servers import Server

PATIENT_S = 120.0
FOR_GOOD = {"stream", "ids", "config", "totals", "workers", "queues"}
"""Keys that may live for ever: the empty streams that ids come from, the configuration, and registries."""


def memory(server: Server) -> int:
    """Return the bytes that the server has in use, but for its clients' buffers, which come and go."""
    with server.client() as client:
        found = client.info("memory")
        return int(found["used_memory"]) - int(found["mem_clients_normal"])


def without_ttl(server: Server) -> set[str | None]:
    """Return what the keys are that never expire."""
    with server.client() as client:
        keys = [key for key in client.scan_iter(f"{NAMESPACE}:*") if client.pttl(key) == -1]
    return {describe(key.decode()) for key in keys}


def run(field: Field, jobs: int) -> None:
    """Let so many jobs be done, by two workers that end afterwards."""
    done = field.totals()["done"] + jobs
    field.enqueue("nothing", *range(jobs))
    workers = [field.serving(concurrency=100) for _ in range(2)]
    field.until(lambda: field.totals()["done"] == done, "all are done", within_s=PATIENT_S)
    for worker in workers:
        worker.send(signal.SIGTERM)
        assert worker.ended() == 0


def look(field: Field) -> int:
    """See that nothing is left of any job; return the bytes in use."""
    assert (field.queue.length(), field.queue.pending()) == (0, [])
    assert without_ttl(field.server) <= FOR_GOOD
    return memory(field.server)


@pytest.mark.parametrize("server_args", [("--appendonly", "no")], ids=[""])
def test_case_G1_a_hundred_thousand_jobs_leave_nothing(field: Field) -> None:
    # What a server needs once: scripts, counters, what it measures of each command.
    run(field, 2000)
    look(field)
    before = look(field)
    run(field, 100_000)

    # Five in a hundred, and less than two bytes a job: some servers' own books vary by so much.
    assert look(field) <= 1.05 * before + 200_000
