"""Make the faults of a plan, one at a time, and note whom each one struck."""

import signal
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

import msgspec

from tests.faults import server_faults
from tests.faults.history import Fault as Broken

from .field import READY_WITHIN_S, Field
from .plan import Fault, Kind, Way

T = TypeVar("T")


class Blow(msgspec.Struct, frozen=True):
    """What a fault did, as far as the recovery from it goes by that."""

    kind: Kind
    since: float
    """From when on it is over: of a kill or a pause, when it began."""
    held: frozenset[str] = frozenset()
    """The entries that the process held which was killed or paused."""
    way: Way | None = None
    pids: frozenset[int] = frozenset()
    """The processes behind a cut."""


class Faults:
    """Makes faults on a field."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self.blows: list[Blow] = []
        self._make: dict[Kind, Callable[[Fault], Blow]] = {
            "kill": self._kill,
            "pause": self._pause,
            "cut": self._cut,
            "flush": self._flush,
            "restart": self._restart,
            "stop": self._stop,
        }

    def make(self, fault: Fault) -> str:
        """Make one fault, return when it is over, and say what it was."""
        blow = self._make[fault.kind](fault)
        self.blows.append(blow)
        what = f"{fault.kind} {fault.way or ''} {fault.how}".split()
        held = f", which held {len(blow.held)} jobs" if blow.held else ""
        return " ".join(what) + (f" for {fault.seconds:.1f} s" if fault.seconds else "") + held

    def _kill(self, fault: Fault) -> Blow:
        field = self._field
        if fault.how == "producer":
            consumer, pid = "", _chosen(sorted(field.on_way("producers")), fault.draw)
        else:
            consumer, pid = self._worker(fault.draw)
        actor = next((one for one in field.processes.running if one.pid == pid), None)
        at = monotonic()
        field.processes.kill(pid)
        # Only now: until it was gone it could settle.
        held = field.held(consumer) if consumer else frozenset()
        if actor is not None:
            field.replace(actor)
        return Blow("kill", at, held)

    def _pause(self, fault: Fault) -> Blow:
        field = self._field
        consumer, pid = self._worker(fault.draw)
        at = monotonic()
        field.processes.signal(pid, signal.SIGSTOP)
        try:
            held = field.held(consumer)
            field.ending.wait(fault.seconds)
        finally:
            field.processes.signal(pid, signal.SIGCONT)
        return Blow("pause", at, held)

    def _stop(self, fault: Fault) -> Blow:
        field = self._field
        actor = _chosen([one for one in field.processes.running if one.role != "producer"], fault.draw)
        at = monotonic()
        field.processes.signal(actor.pid, signal.SIGTERM)
        field.ended(actor)
        field.replace(actor)
        return Blow("stop", at)

    def _cut(self, fault: Fault) -> Blow:
        field, way = self._field, fault.way
        assert way is not None
        before, since = field.on_way(way), monotonic()
        with field.ways.cut(way, fault.how):
            field.ending.wait(fault.seconds)
        at = monotonic()
        pids = before | field.on_way(way)
        field.recorder.note(*[Broken(at, since, f"cut {fault.how}", pid) for pid in pids])
        return Blow("cut", at, way=way, pids=frozenset(pids))

    def _flush(self, fault: Fault) -> Blow:
        assert self._field.server is not None
        server_faults.flush_scripts(self._field.server)
        return Blow("flush", monotonic())

    def _restart(self, fault: Fault) -> Blow:
        server = self._field.server
        assert server is not None
        with self._field.recorder.fault("restart"):
            server.kill9() if fault.how == "crash" else server.terminate()
            self._field.ending.wait(fault.seconds)
            server.start()
        return Blow("restart", monotonic())

    def _worker(self, draw: float) -> tuple[str, int]:
        """Choose a worker, of those at work if there are any."""
        field = self._field
        busy = sorted(field.consumers(busy=True))
        if not busy:
            field.until(lambda: any(field.consumers()), READY_WITHIN_S)
        return _chosen(busy or sorted(field.consumers()), draw)


def _chosen(those: list[T], draw: float) -> T:
    return those[int(draw * len(those))]
