"""An incident in under a minute, as an operator sees it.

    $ python -m examples.incident

Producers of a shop keep going while, one after the other, receipts for a new country hit a bug, a tenant floods
the reports, and the downstream of the payments fails. `streamjobs stats --watch` says of each what it is. Then the
downstream recovers, the bug is mended, and what died of it is replayed. Everything runs on a server of its own.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from examples.incident import shop
from examples.incident.downstream import Downstream, downstream
from streamjobs.demo.processes import DemoFailed, Processes

TICK_S = 0.25
PAYMENTS = 10
"""In each tick; with them comes one receipt, and a report for each of the tenants."""
TENANTS = ("globex", "initech")
FLOOD = 250
MODULE = "examples.incident.shop"
STORY = "story.json"

Seen = dict[str, Any]
"""A document of `streamjobs stats --json`."""


class Incident:
    """Lets it happen, and notes what `streamjobs stats --watch` says meanwhile.

    Attributes:
        story: for each look: when, in which phase, the verdict, and of what in which queue.
    """

    def __init__(self, folder: Path, processes: Processes, target: Downstream, url: str) -> None:
        self.story: list[dict[str, Any]] = []
        self._folder = folder
        self._processes = processes
        self._target = target
        self._app = shop.make(shop.VAT)
        self._app.use(url)
        self._orders = 0
        self._open = False
        self._abroad = False
        self._read_bytes = 0
        self._phase = ""
        self._begun = time.monotonic()

    def happen(self) -> None:
        """Go through all phases.

        Raises:
            DemoFailed: one does not come to what it should.
        """
        self._start()
        self._go_on("start", lambda seen: all(queue(seen, name)["workers"] for name in ("shop", "reports")))
        self._open = True
        self._go_on("calm", lambda seen: seen["health"] == "ok" and done(seen, "shop") >= 100, at_least_s=3)
        self._abroad = True
        self._app.enqueue_many_sync(self._app.kind("reports.build").call(tenant="acme") for _ in range(FLOOD))
        self._go_on("bug, flood", lambda seen: "dead" in why(seen, "shop") and "oldest" in why(seen, "reports"))
        self._target.overloaded.set()
        self._go_on("outage", lambda seen: is_outage(seen), at_least_s=6)
        self._command("stats")
        self._target.overloaded.clear()
        self._go_on("recovery", lambda seen: why(seen, "shop") == ["dead"] and not why(seen, "reports"))
        self._mend()
        self._replay()
        self._command("stats")

    def close(self) -> None:
        """Let go of the server."""
        self._app.close()

    def _start(self) -> None:
        self._worker("reports", "app")
        self._worker("shop", "app")
        # What a server does for other programs of this machine is no part of the story.
        watch = "stats --watch 0.5s --json --threshold latency=off"
        self._processes.start("watch", "-m", "streamjobs", *watch.split())
        print(f"$ streamjobs {watch}")

    def _worker(self, queue: str, app: str) -> None:
        words = f"worker -A {MODULE}:{app} -Q {queue} -c 8 --lease 5s --sweep 1s"
        self._processes.start(f"worker-{queue}-{app}", "-m", "streamjobs", *words.split())

    def _mend(self) -> None:
        """Put the mended app in the place of the other, without a moment in which nobody works."""
        self._worker("shop", "mended")
        self._go_on("mended", lambda seen: queue(seen, "shop")["workers"] == 2)
        self._processes.stop("worker-shop-app")

    def _replay(self) -> None:
        which = ["dead", "replay", "-Q", "shop", "--kind", "receipts.print"]
        self._command("dead", "groups")
        self._command(*which, "--dry-run")
        self._processes.start("replay", "-m", "streamjobs", *which, "--rate", "20/s", "--yes")
        self._go_on("replay", lambda seen: "replay" in self._processes.ended() and seen["health"] == "ok")
        print(f"\n$ streamjobs {' '.join(which)} --rate 20/s --yes")
        print((self._folder / "replay.log").read_text())

    def _command(self, *words: str) -> None:
        print(f"\n$ streamjobs {' '.join(words)}\n{self._processes.ask(*words)}")

    def _go_on(self, phase: str, until: Callable[[Seen], bool], *, at_least_s: float = 0, within_s: float = 40) -> None:
        """Let producers go on until a look finds what is expected."""
        self._phase, begun = phase, time.monotonic()
        while True:
            if self._open:
                self._produce()
            time.sleep(TICK_S)
            looks, passed = self._look(), time.monotonic() - begun
            if passed >= at_least_s and any(until(seen) for seen in looks):
                return
            if passed > within_s:
                raise DemoFailed(f"{phase}: nothing came of it within {within_s:.0f} s")
            if any(name.startswith("worker") and name != "worker-shop-app" for name in self._processes.ended()):
                raise DemoFailed(f"{phase}: a worker has ended; logs are in {self._folder}")

    def _produce(self) -> None:
        charge, receipt, report = map(self._app.kind, ("payments.charge", "receipts.print", "reports.build"))
        first = self._orders
        self._orders += PAYMENTS
        country = "SE" if self._abroad and first % (2 * PAYMENTS) == 0 else "DE"
        jobs = [charge.call(order=order) for order in range(first, self._orders)]
        jobs += [report.call(tenant=tenant) for tenant in TENANTS]
        jobs.append(receipt.call(order=first, cents=100 + first % 900, country=country))
        for outcome in self._app.enqueue_many_sync(jobs):
            if isinstance(outcome, Exception):
                raise outcome

    def _look(self) -> list[Seen]:
        """Return what the watch has said since, and tell of it where it is news."""
        log = (self._folder / "watch.log").read_bytes()[self._read_bytes :]
        whole = log[: log.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        looks: list[Seen] = [json.loads(line) for line in whole.splitlines() if line.startswith(b"{")]
        for seen in looks:
            self._tell(seen)
        return looks

    def _tell(self, seen: Seen) -> None:
        names = {one["queue"]: why(seen, one["queue"]) for one in seen["queues"]}
        note = {
            "phase": self._phase,
            "health": seen["health"],
            "why": {name: said for name, said in names.items() if said},
        }
        if not self.story or any(self.story[-1][name] != value for name, value in note.items()):
            print(f"{time.monotonic() - self._begun:5.1f}s  {self._phase:<10}  {seen['health']}")
            for one in seen["queues"]:
                for reason in one["reasons"]:
                    print(f"{'':20}{one['queue']:<8} {reason['text']}")
        self.story.append(note)


def queue(seen: Seen, name: str) -> dict[str, Any]:
    """Return one queue of a look; an empty one where nobody has met it yet."""
    return next((one for one in seen["queues"] if one["queue"] == name), {"reasons": [], "done": 0, "workers": 0})


def why(seen: Seen, name: str) -> list[str]:
    """Return why a queue is not well, in a word each."""
    return [reason["about"] for reason in queue(seen, name)["reasons"]]


def done(seen: Seen, name: str) -> int:
    """Return how many jobs of a queue are done."""
    return int(queue(seen, name)["done"])


def is_outage(seen: Seen) -> bool:
    """Say whether a look tells that payments fail, and that jobs wait too long for it."""
    return seen["health"] == "critical" and {"oldest", "failures"} <= set(why(seen, "shop"))


def waits(folder: Path) -> dict[str, float]:
    """Return the longest that each tenant's reports have waited, in seconds."""
    longest: dict[str, float] = {}
    for line in (folder / "waits.txt").read_text().splitlines():
        tenant, waited_s = line.split()
        longest[tenant] = max(float(waited_s), longest.get(tenant, 0.0))
    return longest


def run(folder: Path) -> int:
    """Let it happen, with everything that is kept in a folder; return the exit code."""
    url = f"embedded://{folder}/server"
    with downstream() as target:
        environment = {
            "STREAMJOBS_URL": url,
            "STREAMJOBS_NAMESPACE": "sj",
            shop.DOWNSTREAM: target.url,
            shop.WAITS: str(folder / "waits.txt"),
        }
        with Processes(folder, environment) as processes:
            incident = Incident(folder, processes, target, url)
            try:
                incident.happen()
            except DemoFailed as error:
                print(f"the incident went another way: {error}")
                return 1
            finally:
                incident.close()
                (folder / STORY).write_text(json.dumps(incident.story, indent=1))
    longest = waits(folder)
    flood_s, others_s = longest.pop("acme"), max(longest.values())
    print(f"reports of the tenant that floods waited up to {flood_s:.1f}s, those of others up to {others_s:.1f}s")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m examples.incident", description="An incident in under a minute.")
    parser.add_argument("--folder", type=Path, help="keep everything in this folder; else in a temporary one")
    chosen = parser.parse_args().folder
    if chosen is not None:
        chosen.mkdir(parents=True, exist_ok=True)
        sys.exit(run(chosen.resolve()))
    with tempfile.TemporaryDirectory(prefix="streamjobs-incident-") as temporary:
        sys.exit(run(Path(temporary)))
