"""A server that is away, silent or refusing for seconds: waited for in peace, and served again within seconds."""

import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.faults import server_faults
from tests.faults.field import FAST, HEALED_WITHIN_S, Field
from tests.faults.proxy import Act, Proxy, Rule
from tests.faults.refusals import REPLIES
from tests.faults.server_faults import DURABLE

RECONNECTS_PER_S = 20
REQUESTS_PER_S = 60
"""Six services of a worker, of which the lease thread asks most often: each sixth of a lease."""
AWAY_S = 3.0


def healed(field: Field, n: int) -> None:
    """See the one worker, which met the fault, end a new job soon after the fault's end."""
    [worker] = field.actors
    field.enqueue("nap", n)
    field.happens("E", n, within_s=HEALED_WITHIN_S)
    assert worker.running()


@contextmanager
def counted(field: Field, proxy: Proxy) -> Iterator[None]:
    """Stay in this state for a while; then neither connections, requests nor lines of the log were many."""
    [worker] = field.actors
    said, connections, requests = len(worker.said()), proxy.connections, proxy.seen.total()
    began = time.monotonic()
    time.sleep(AWAY_S)
    seconds = time.monotonic() - began
    yield
    assert proxy.connections - connections <= RECONNECTS_PER_S * seconds
    assert proxy.seen.total() - requests <= REQUESTS_PER_S * seconds
    lines = worker.said()[said:].splitlines()
    # What becomes of a job is said once for each; and the part of the worker that complains is no cause of its own.
    causes = Counter(re.sub(r"streamjobs\.worker [\w ]+:", "", line) for line in lines if " job " not in line)
    assert max(causes.values(), default=0) <= seconds, causes
    assert "Traceback" not in worker.said()


@pytest.mark.parametrize("how", "away held LOADING READONLY BUSY OOM NOSCRIPT NOGROUP UNBLOCKED MAXCLIENTS".split())
def test_no_hot_loops_while_a_server_cannot_be_used(field: Field, proxy: Proxy, how: str) -> None:
    field.enqueue("nap", *range(5), args=(0.5,))
    field.serving(proxy.url)
    field.until(lambda: field.count("S") == 5, "all run")
    match how:
        case "away":
            proxy.go_away()
            proxy.cut()
        case "held":
            proxy.hold()
        case _:
            proxy.add(Rule(Act.REFUSE, error=REPLIES[how]))
    with counted(field, proxy):
        proxy.heal()
    healed(field, 100)

    field.judge()
    assert field.warnings("trying on") >= 1


@pytest.mark.parametrize("how", ["away", "LOADING"])
def test_no_hot_loop_of_a_worker_that_starts_before_its_server(field: Field, proxy: Proxy, how: str) -> None:
    if how == "away":
        proxy.go_away()
    else:
        proxy.add(Rule(Act.REFUSE, error=REPLIES[how]))
    worker = field.worker(proxy.url)
    field.until(lambda: "cannot start yet" in worker.said(), "it says so")
    with counted(field, proxy):
        proxy.heal()
    healed(field, 1)


def test_no_hot_loop_where_a_group_cannot_be_made_again(field: Field, proxy: Proxy) -> None:
    """Each read says that there is none, and each try to make it that there is one."""
    field.serving(proxy.url)
    proxy.add(Rule(Act.REFUSE, "xreadgroup", error=REPLIES["NOGROUP"]))
    with counted(field, proxy):
        proxy.heal()
    healed(field, 1)


def forgotten_scripts(field: Field, proxy: Proxy) -> None:
    server_faults.flush_scripts(field.server)


def cut_connections(field: Field, proxy: Proxy) -> None:
    proxy.cut()


def swallowed_claims(field: Field, proxy: Proxy) -> None:
    hole = proxy.add(Rule(Act.HOLE, "xreadgroup", times=1))
    field.until(lambda: hole.hits, "a reply is swallowed")


def frozen_worker(field: Field, proxy: Proxy) -> None:
    [worker] = field.actors
    worker.send(signal.SIGSTOP)
    time.sleep(3 * FAST["lease"])
    worker.send(signal.SIGCONT)


@pytest.mark.parametrize("fault", [forgotten_scripts, cut_connections, swallowed_claims, frozen_worker])
def test_work_goes_on_within_five_seconds(field: Field, proxy: Proxy, fault: Callable[[Field, Proxy], None]) -> None:
    """As it does after all faults that last; those have scenarios of their own."""
    field.enqueue("nap", *range(5), args=(0.3,))
    field.serving(proxy.url)
    field.until(lambda: field.count("S") == 5, "all run")
    fault(field, proxy)
    healed(field, 100)

    field.judge()


@pytest.mark.parametrize("server_args", [DURABLE], ids=[""])
def test_case_F1_a_server_that_was_away_for_ten_seconds_is_served_within_five(field: Field) -> None:
    field.enqueue("nap", *range(50), args=(0.1,))
    field.serving()
    field.until(lambda: field.count("S") >= 10, "some run")
    server_faults.crash(field.server, away_s=10)
    healed(field, 100)

    field.judge()


def test_case_F2_connections_that_are_cut_again_and_again_for_ten_seconds_lose_nothing(field: Field) -> None:
    field.serving()
    cut = 0
    for round_ in range(20):
        field.enqueue("nap", *range(round_ * 20, round_ * 20 + 20), args=(0.1,))
        time.sleep(0.5)
        cut += server_faults.cut_clients(field.server)
    healed(field, 1000)

    field.judge()
    assert cut >= 40


def test_case_F5_connections_without_a_word_are_given_up_and_replaced(field: Field, proxy: Proxy) -> None:
    """Nothing comes and nothing is closed, on every connection: as where a router drops packets."""
    field.serving(proxy.url)
    field.until(lambda: proxy.seen["xreadgroup"] and proxy.seen["blpop"], "it waits for jobs and for the bell")
    before = proxy.connections
    proxy.hold()
    field.enqueue("nap", 1)
    field.until(lambda: proxy.connections >= before + 2, "it tries other connections, again and again")
    assert field.count("S") == 0
    proxy.release()
    healed(field, 2)

    field.judge()


@pytest.mark.parametrize("lease_s", [0.5, 30.0], ids=["longer than its lease", "shorter than its lease"])
def test_case_C10_of_a_failure_during_a_block_the_server_hears_once(field: Field, lease_s: float) -> None:
    field.enqueue("ends", 1, args=("bury", 0.01, 0.3))
    field.serving(lease=lease_s)
    field.happens("S", 1)
    with server_faults.frozen(field.server):
        field.until(lambda: field.count("F", 1) or field.count("C", 1), "the handler ends")
        time.sleep(2.0)
    healed(field, 2)

    field.drained()
    rows = field.queue.dead()
    # Where another run of it came first, that one ended well.
    assert len(rows) + field.count("E", 1) == 1
    assert [(row["reason"], row["error"], row["history"].count(b'"k":')) for row in rows] in (
        [] if lease_s < 1 else [(b"permanent", b"Permanent: bury", 1)],
        [(b"permanent", b"Permanent: bury", 1)],
    )
    assert field.totals()["dead"] == len(rows)
