"""What a supervisor says for all its children: put together, and of those that say nothing too."""

import asyncio
import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from http import HTTPStatus

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamjobs import StreamJobs
from streamjobs.core.addresses import parse_address
from streamjobs.worker import front as module
from streamjobs.worker.front import QUARANTINE, Front, Place
from streamjobs.worker.site import Page, Site
from tests.worker.groups import PATIENT_S, Barrier, Start
from tests.worker.visits import Port

METRIC = '# HELP m M.\n# TYPE m gauge\nm{queue="q"} 1.0\n'


class Child:
    """A child that serves, where it was told to; `says` is what it says of its life."""

    def __init__(self, *, ready: bool = True, age_s: float = 0.0) -> None:
        self.ready = ready
        self.started_at = asyncio.get_running_loop().time() - age_s
        self.says = Page("ok\n")
        self.is_ready = Page("ok\n")
        self.site: Site | None = None

    async def serve(self, place: Place) -> None:
        """Serve at the socket that the words name, as the process does that inherits it."""

        async def livez() -> Page:
            return self.says

        async def readyz() -> Page:
            return self.is_ready

        async def metrics() -> Page:
            return Page(METRIC)

        inherited = socket.socket(fileno=place.descriptors[0])
        copy = inherited.dup()
        inherited.detach()
        self.site = Site({"/livez": livez, "/readyz": readyz, "/metrics": metrics})
        await self.site.open(parse_address(f"fd://{copy.detach()}", "port"))

    async def close(self) -> None:
        if self.site:
            await self.site.close()


class Group:
    """A front at a port, and children in their places."""

    def __init__(self, port: Port, front: Front, stack: ExitStack) -> None:
        self.port = port
        self.front = front
        self._stack = stack
        self.children: list[Child] = []

    async def add(self, name: str, child: Child, *, serves: bool = True) -> Child:
        place = self._stack.enter_context(self.front.place(name))
        place.member = child
        if serves:
            await child.serve(place)
        self.children.append(child)
        return child


@pytest.fixture
async def group(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Group]:
    monkeypatch.setattr(module, "ASK_S", 0.2)
    port = Port()
    front = Front(port.address, port.address, processes=2)
    with ExitStack() as stack:
        async with front.serving():
            group = Group(port, front, stack)
            yield group
            for child in group.children:
                await child.close()


async def test_no_child_is_no_trouble_and_not_ready(group: Group) -> None:
    assert await group.port.get("/livez") == (200, "no child runs\n")
    assert await group.port.get("/readyz") == (503, "child 0: not there\nchild 1: not there\n")
    assert await group.port.get("/metrics") == (200, "")


async def test_all_children_are_asked(group: Group) -> None:
    for name in ("0", "1"):
        await group.add(name, Child())

    for path in ("/livez", "/readyz"):
        assert await group.port.get(path) == (200, "child 0: ok\nchild 1: ok\n")


async def test_one_in_trouble_is_trouble_for_all(group: Group) -> None:
    await group.add("0", Child())
    other = await group.add("1", Child())
    other.says = Page("2 handlers do not end\n", HTTPStatus.SERVICE_UNAVAILABLE)

    assert await group.port.get("/livez") == (503, "child 0: ok\nchild 1: 2 handlers do not end\n")
    assert (await group.port.get("/readyz"))[0] == 200


@pytest.mark.parametrize(
    ("make", "live", "said"),
    [
        (lambda: Child(ready=False), 200, "starting"),
        (lambda: Child(ready=False, age_s=61), 503, "no answer within 0.2 s"),
        (lambda: Child(ready=True), 503, "no answer within 0.2 s"),
    ],
    ids=["starting", "started for too long", "blocked"],
)
async def test_one_that_does_not_answer(group: Group, make: Callable[[], Child], live: int, said: str) -> None:
    await group.add("0", Child())
    await group.add("1", make(), serves=False)

    assert await group.port.get("/livez") == (live, f"child 0: ok\nchild 1: {said}\n")
    assert await group.port.get("/readyz") == (503, f"child 0: ok\nchild 1: {said}\n")


async def test_one_that_waits_for_the_server_is_live(group: Group) -> None:
    child = await group.add("0", Child(ready=False))
    child.is_ready = Page("it has not joined its queues yet\n", HTTPStatus.SERVICE_UNAVAILABLE)

    assert (await group.port.get("/livez"))[0] == 200
    assert "child 0: it has not joined its queues yet\n" in (await group.port.get("/readyz"))[1]


async def test_the_child_for_suspects_must_live_and_need_not_be_ready(group: Group) -> None:
    for name in ("0", "1"):
        await group.add(name, Child())
    suspects = await group.add(QUARANTINE, Child())
    suspects.says = suspects.is_ready = Page("stuck\n", HTTPStatus.SERVICE_UNAVAILABLE)

    assert (await group.port.get("/readyz"))[0] == 200
    assert await group.port.get("/livez") == (503, "child 0: ok\nchild 1: ok\nchild quarantine: stuck\n")


async def test_one_that_was_dismissed_is_not_missed(group: Group) -> None:
    await group.add("0", Child())
    group.front.dismiss("1")

    assert await group.port.get("/readyz") == (200, "child 0: ok\n")


async def test_metrics_say_whose_they_are_and_those_that_are_blocked_say_none(group: Group) -> None:
    await group.add("0", Child())
    await group.add("1", Child(), serves=False)
    await group.add(QUARANTINE, Child())

    status, text = await group.port.get("/metrics")

    [family] = text_string_to_metric_families(text)
    assert status == 200
    assert [sample.labels for sample in family.samples] == [
        {"child": "0", "queue": "q"},
        {"child": "quarantine", "queue": "q"},
    ]


@pytest.mark.parametrize(
    ("front", "options"),
    [
        (Front(), []),
        (Front(8080), ["--health-port"]),
        (Front(None, 9090), ["--metrics-port"]),
        (Front(8080, 9090), ["--health-port", "--metrics-port"]),
    ],
    ids=["nothing", "health", "metrics", "both"],
)
def test_a_child_serves_what_is_asked_for_and_nothing_else(front: Front, options: list[str]) -> None:
    with front.place("0") as place:
        at = [f"fd://{descriptor}" for descriptor in place.descriptors]
        assert place.words == [word for option in options for word in (option, *at)]
        assert len(at) == bool(options)


def page(where: str, path: str) -> tuple[int, str]:
    """Return status and text of a page."""
    try:
        with urllib.request.urlopen(where + path, timeout=PATIENT_S) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def becomes(where: str, path: str, status: int) -> str:
    """Wait until a page has this status; return its text."""
    deadline = time.monotonic() + PATIENT_S
    while (answer := page(where, path))[0] != status:
        assert time.monotonic() < deadline, answer
    return answer[1]


def test_a_supervisor_answers_for_its_children(start: Start, barrier: Barrier, sender: StreamJobs) -> None:
    """Also for one whose loop is blocked, and one that has been killed; their metrics say whose they are."""
    group = start("-w", "2", "-c", "1", "--health-port", "0", "--metrics-port", "0")
    health = group.await_line(r"/livez, /readyz, /metrics at (\S+)")[1]
    first, _ = group.await_children(2)
    assert becomes(health, "/readyz", 200) == "child 0: ok\nchild 1: ok\n"

    sender.send_sync("blocks")
    blocked = int(group.await_line(r"blocks started in (\d+)")[1])
    number = int(blocked != first)
    for path in ("/livez", "/readyz"):
        assert f"child {number}: no answer within" in becomes(health, path, 503)
    assert re.findall(r'worker_slots{child="(\d)"} 1.0', page(health, "/metrics")[1]) == [str(1 - number)]
    barrier.open()
    becomes(health, "/livez", 200)
    sender.send_sync("quick")
    group.await_line("quick started")
    counted = r'jobs_finished_total{child="\d",kind="(?:blocks|quick)",outcome="done",queue="q"} 1.0'
    deadline = time.monotonic() + PATIENT_S
    while len(re.findall(counted, page(health, "/metrics")[1])) < 2:
        assert time.monotonic() < deadline

    os.kill(first, signal.SIGKILL)
    becomes(health, "/readyz", 503)
    assert page(health, "/livez")[0] == 200
    becomes(health, "/readyz", 200)
    group.signal(signal.SIGTERM)
    assert group.end() == 0
