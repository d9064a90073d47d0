"""F1 to F5, F48, F50: what becomes of a job whose producer, or whose way to the server, fails."""

import asyncio
import math
import signal
from datetime import UTC, datetime
from typing import Any

import pytest

from streamjobs import Handle, InvalidOption, OutcomeUnknown, StreamJobsError, Unavailable
from tests.faults import server_faults
from tests.faults.field import Field
from tests.faults.proxy import Act, Proxy, Rule

KILLED = -signal.SIGKILL


def test_F1_a_producer_killed_before_it_sends_leaves_no_job(field: Field) -> None:
    assert field.producer(1, armed="producer.before_send=kill9@1").ended() == KILLED

    assert field.queue.length() == 0
    assert field.totals()["enqueued"] == 0


def test_F1_a_producer_killed_before_its_reply_leaves_the_job_once(field: Field, proxy: Proxy) -> None:
    reply = proxy.add(Rule(Act.HOLE, "enqueue"))
    producer = field.producer(1, url=proxy.url)
    field.until(lambda: reply.hits and field.queue.length() == 1, "the server has executed the request")
    producer.kill9()
    field.jobs.add(1)

    field.serving()
    field.judge()
    assert field.count("S", 1) == 1
    assert field.count("J", 1) == 0


def test_F1_a_producer_killed_after_the_reply_leaves_the_job_once(field: Field) -> None:
    assert field.producer(1, count=2, armed="producer.after_reply=kill9@2").ended() == KILLED
    field.jobs |= {1, 2}

    field.serving()
    field.judge()
    assert (field.count("J"), field.count("S")) == (1, 2)


def test_F48_an_enqueue_that_ends_half_way_holds_no_dedupe_key(field: Field) -> None:
    server_faults.command(field.server, "ACL", "SETUSER", "p", "on", ">secret", "~*", "&*", "+@all", "-xadd")
    app = field.make_app(field.server.url.replace("unix://", "unix://p:secret@"))
    [error] = field.send(app, field.call("nap", 1, dedupe_key="k"))
    app.close()
    server_faults.command(field.server, "ACL", "DELUSER", "p")
    assert isinstance(error, StreamJobsError)

    field.send(field.app, field.call("nap", 2, dedupe_key="k"))
    field.serving()
    field.judge()
    assert field.count("S", 2) == 1


@pytest.mark.parametrize("delay", [None, 0.1], ids=["now", "later"])
def test_F2_a_lost_reply_leaves_one_job_of_one_id(field: Field, proxy: Proxy, delay: float | None) -> None:
    lost = proxy.add(Rule(Act.DROP, "enqueue", "schedule", times=3))
    app = field.make_app(proxy.url)
    handles = [field.send(app, field.call("nap", n, delay=delay))[0] for n in (1, 2)]
    app.close()

    assert lost.hits == 3
    assert field.totals()["enqueued"] == 2
    assert len({handle.id for handle in handles if isinstance(handle, Handle)}) == 2
    field.serving()
    field.judge()
    assert field.count("S") == 2


def test_F2_a_request_that_never_arrives_is_sent_again(field: Field, proxy: Proxy) -> None:
    lost = proxy.add(Rule(Act.DROP, "enqueue", side="request", times=3))
    app = field.make_app(proxy.url)
    field.send(app, field.call("nap", 1))
    app.close()

    assert (lost.hits, proxy.seen["enqueue"], field.totals()["enqueued"]) == (3, 4, 1)
    field.serving()
    field.judge()


def test_F2_past_the_deadline_the_outcome_is_unknown_and_retrying_is_exact(field: Field, proxy: Proxy) -> None:
    lost = proxy.add(Rule(Act.DROP, "enqueue", then=proxy.go_away))
    app = field.make_app(proxy.url, enqueue_timeout=0.3)
    [error] = field.send(app, field.call("nap", 1))
    assert isinstance(error, OutcomeUnknown)
    proxy.heal()
    ids = {field.retry(error).id for _ in range(2)}
    app.close()

    assert (lost.hits, len(ids), field.totals()["enqueued"]) == (1, 1, 1)
    field.serving()
    field.judge()


def scripts_run(field: Field) -> int:
    """Return how many calls of scripts the server has executed."""
    return field.queue.calls().get("evalsha", 0)


def test_F2_a_late_copy_of_a_batch_does_nothing(field: Field, proxy: Proxy) -> None:
    late = proxy.add(Rule(Act.DELAY, "enqueue", side="request", seconds=0.3, times=1, then=proxy.cut))
    app = field.make_app(proxy.url)
    before = scripts_run(field)
    for n in (1, 2):
        field.send(app, field.call("nap", n))
    app.close()
    assert (late.hits, scripts_run(field) - before) == (1, 2)
    field.until(lambda: scripts_run(field) - before == 3, "the copy comes, from a dead connection")
    field.serving()

    field.judge()
    assert (field.totals()["enqueued"], field.count("S")) == (2, 2)


@pytest.mark.parametrize("share", [0.02, 0.6, 0.99])
def test_F3_a_connection_cut_in_mid_batch_costs_and_doubles_nothing(field: Field, proxy: Proxy, share: float) -> None:
    app = field.make_app(proxy.url)
    field.send(app, field.call("nap", 0))
    halves = [
        proxy.add(Rule(Act.TRUNCATE, "enqueue", side=side, times=2, share=share)) for side in ("request", "reply")
    ]
    handles = field.send(app, *(field.call("nap", n, 0) for n in range(1, 1201)))
    app.close()

    assert [half.hits for half in halves] == [2, 2]
    assert all(isinstance(handle, Handle) for handle in handles)
    assert field.totals()["enqueued"] == 1201
    field.serving(concurrency=100)
    field.judge()
    assert field.count("S") == 1201


def test_F3_each_job_of_a_cut_bulk_has_an_outcome_and_retries_fill_the_gap(field: Field, proxy: Proxy) -> None:
    app = field.make_app(proxy.url, enqueue_timeout=0.3)
    field.send(app, field.call("nap", 0))
    cut = proxy.add(Rule(Act.TRUNCATE, "enqueue", skip=1, times=1, then=proxy.go_away))
    outcomes = field.send(app, *(field.call("nap", n, 0) for n in range(1, 1501)))
    unknown = [one for one in outcomes if isinstance(one, OutcomeUnknown)]
    unsent = [n for n, one in enumerate(outcomes, 1) if isinstance(one, Unavailable)]
    proxy.heal()
    for error in unknown:
        field.retry(error)
    app.close()

    assert cut.hits == 1
    assert unknown
    assert len(unknown) + len(unsent) < 1500
    field.serving(concurrency=100)
    field.judge()
    assert field.totals()["enqueued"] == 1501 - len(unsent)


async def test_F4_a_cancelled_enqueue_does_not_mix_up_replies(field: Field, proxy: Proxy) -> None:
    late = proxy.add(Rule(Act.DELAY, "enqueue", times=1, skip=1, seconds=0.3))
    app = field.make_app(proxy.url)
    handles = {0: await app.kind("nap").enqueue(0)}
    under_way = asyncio.create_task(app.kind("nap").enqueue(1))
    await asyncio.wait([under_way], timeout=0.1)
    under_way.cancel()
    for n in (2, 3, 4):
        handles[n] = await app.kind("nap").enqueue(n)
    assert (await asyncio.gather(under_way, return_exceptions=True))[0].__class__ is asyncio.CancelledError
    entries = field.queue.command("XRANGE", field.queue.keys.stream, "-", "+")
    by_id = {
        f"q:{entry.decode()}": int(fields[3].split(b":")[1].split(b",")[0].rstrip(b"}")) for entry, fields in entries
    }
    await app.aclose()

    assert late.hits == 1
    assert {handle.id: n for n, handle in handles.items()}.items() <= by_id.items()
    # It was under way: it is there, and only once.
    assert sorted(by_id.values()) == [0, 1, 2, 3, 4]


def test_F5_no_request_is_repeated_behind_our_back(field: Field, proxy: Proxy) -> None:
    [handle] = field.enqueue("nap", 1)
    lost = proxy.add(Rule(Act.DROP, "lookup"))
    app = field.make_app(proxy.url)
    with pytest.raises(OutcomeUnknown):
        app.handle(handle.id).status_sync()
    app.close()

    assert (lost.hits, proxy.seen["lookup"]) == (1, 1)


def test_F5_what_may_have_been_done_is_never_told_as_a_failure(field: Field, proxy: Proxy) -> None:
    lost = proxy.add(Rule(Act.DROP, "enqueue", then=proxy.go_away))
    app = field.make_app(proxy.url, enqueue_timeout=0.2)
    [error] = field.send(app, field.call("nap", 1))
    app.close()
    field.serving()

    field.judge()
    assert isinstance(error, OutcomeUnknown)
    assert (lost.hits, field.count("S")) == (1, 1)


@pytest.mark.parametrize(
    "options",
    [{"delay": -1}, {"delay": math.nan}, {"delay": math.inf}, {"delay": 1e300}, {"delay": True}, {"delay": "1"},
     {"at": datetime(9999, 12, 31, tzinfo=UTC)}, {"at": datetime(2026, 1, 1)}],  # noqa: DTZ001
    ids=str,
)  # fmt: skip
def test_F50_an_impossible_delay_is_refused_before_anything_is_sent(field: Field, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        field.app.kind("nap").options(**options).enqueue_sync(1)

    assert field.totals()["enqueued"] == 0
