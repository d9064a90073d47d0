"""Random histories of one queue, compared with the model after every step."""

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from streamjobs.core.codec import decode_meta, split_envelope
from streamjobs.core.job import Claim
from streamjobs.protocol import leases, upkeep
from tests.model.history import History
from tests.model.model import ENDED, IN_STREAM, MAX_FAILURES, Record
from tests.model.story import Story
from tests.store.support import job_of

CONSUMERS = st.sampled_from(["a", "b", "c"])
PICK = st.integers(0, 999)
DELAYS = st.sampled_from([1, 100, 5000])
SETTLEMENTS = "complete fail fail fail bury snooze release release mark mark renew".split()
OPERATIONS = "cancel replay replay purge reschedule reschedule".split()
# One rule for all deeds: of many rules, Hypothesis leaves some out in each example, and most stories
# worth telling need nearly all of these.
FETCHES = "claim claim run_due run_due run_due take take sweep".split()
MISHAPS = "crash crash crash silence send_again lose_scripts lose_group".split()
ON_CLAIMS = {*SETTLEMENTS, "start", "give_up", "outdate", "overtake"}


def _of(name: str) -> st.SearchStrategy[str]:
    """Draw from a list of the machine that runs."""
    return st.runner().flatmap(lambda machine: st.sampled_from(getattr(machine, name)))


class Histories(History):
    """Workers, producers and operators at one queue; a claim is used as often and as late as it pleases."""

    KEYS: Sequence[str] = ["", "", "", "", "k", "l"]
    DEEDS: Sequence[str] = ["enqueue", "enqueue", "schedule", *FETCHES, *MISHAPS, *SETTLEMENTS, *OPERATIONS]
    WANTED = (
        "duplicate refused",
        "fence refused",
        "taken over",
        "given back and taken",
        "zombie's success counted",
        "success came too late",
        "success without a group",
        "cancelled while running",
        "buried",
        "replayed",
        "rescheduled",
    )

    def __init__(self) -> None:
        super().__init__()
        self.story = Story(self.store, self.seen)
        self.model = self.story.model

    @initialize(keys=st.lists(_of("KEYS"), min_size=3, max_size=6), claimed=st.integers(1, 6))
    def begin_in_the_middle(self, keys: list[str], claimed: int) -> None:
        self.store.make_group()
        self.story.enqueue(keys)
        self.story.claim("a", claimed)

    @rule(
        deed=_of("DEEDS"),
        consumer=CONSUMERS,
        pick=PICK,
        keys=st.lists(_of("KEYS"), min_size=1, max_size=4),
        delay=DELAYS,
        late=st.sampled_from([0, 0, 0, 1]),
    )
    def step(self, deed: str, consumer: str, pick: int, keys: list[str], delay: int, late: int) -> None:
        story = self.story
        if deed in ON_CLAIMS:
            if story.claims:
                claim = self._of_latest(pick) if deed in ("outdate", "overtake") else self._claim(pick, late)
                getattr(story, deed)(*claim, delay)
        elif deed in OPERATIONS:
            getattr(story, deed)(self._job(pick, deed))
        elif deed in ("enqueue", "schedule", "send_again"):
            getattr(story, deed)(keys, delay)
        elif deed == "run_due":
            story.promote(delay)
            story.claim(consumer, 100)
        elif deed in ("crash", "silence"):
            story.fall_silent(pick)
            if deed == "crash":
                story.sweep(consumer, 3)
        elif deed == "lapse":
            story.lapse(pick)
        elif deed == "lose_scripts":
            story.lose_scripts()
        elif deed == "lose_group":
            # Rare, since it ends all other stories.
            if pick % 4 == 0:
                story.lose_group([self._claim(pick // 4, late)] if story.claims else [])
        else:
            getattr(story, deed)(consumer, 1 + pick % 3)

    def _job(self, pick: int, deed: str) -> Record:
        """Return a job to operate on: mostly one for which the deed is meant."""
        meant = {"reschedule": "scheduled", "cancel": ""}.get(deed, "dead")
        jobs = (pick % 3 and self.model.at(meant)) or list(self.model.jobs.values())
        return jobs[pick % len(jobs)]

    def _claim(self, pick: int, late: int) -> tuple[str, Claim]:
        """Return a claim: any that ever was if `late`, else one that is still held, if there is one."""
        held = [] if late else self.story.held()
        claims = held or self.story.claims
        return claims[-1 - pick % len(claims)]

    def _of_latest(self, pick: int) -> tuple[str, Claim]:
        """Return a claim of a job that takes newer arguments and is held, if there is one."""
        claims = [one for one in self.story.held() if decode_meta(one[1].meta).latest]
        return claims[pick % len(claims)] if claims else self._claim(pick, 0)

    @invariant()
    def each_job_is_where_the_model_has_it_and_nothing_else_is_there(self) -> None:
        assert self._places() == {one.id: _expected(one) for one in self.model.jobs.values() if _expected(one)}

    def _places(self) -> dict[str, tuple[Any, ...]]:
        """Return where each job is on the server; a job in two places fails."""
        store, pending = self.store, self.store.pending()
        found: list[tuple[str, tuple[Any, ...]]] = []
        for claim in leases.claims(store.entries(), 0.0):
            holder, deliveries = pending.pop(claim.entry, (b"", 0))
            place = {b"": "waiting", b"released": "released"}.get(holder, "running")
            found.append((job_of(claim), (place, claim.entry.decode(), claim.body, deliveries)))
        for zset, retrying in ((store.keys.scheduled, False), (store.keys.retries, True)):
            found += [(one, ("scheduled", retrying, due)) for one, due in store.due(zset).items()]
        for row in store.dead_rows():
            found.append((row["id"].decode(), ("dead", row["body"], int(row.get("newer", b"0")))))
        assert not pending, f"claims of entries that are gone: {pending}"
        assert len(found) == len(dict(found)), found
        return dict(found)

    @invariant()
    def every_job_is_found_by_its_id(self) -> None:
        records = list(self.model.jobs.values())
        answers = self.store.executor.run_all([upkeep.lookup(self.store.keys, one.id) for one in records])
        for one, answer in zip(records, answers, strict=True):
            assert isinstance(answer, dict), answer
            assert answer["state"].decode() == one.state()
            if one.place not in ENDED:
                assert (answer["kind"].decode(), answer["body"]) == (one.kind, one.arguments())
                meta = decode_meta(answer["meta"])
                failures = meta.failures + (one.place == "dead")
                assert (failures, meta.generation, meta.dedupe_key) == (one.failures, one.generation, one.key)
                assert one.failures <= MAX_FAILURES

    @invariant()
    def counts_are_exact(self) -> None:
        store, model, totals = self.store, self.model, self.model.totals
        moved = {word: n for word, n in store.totals().items() if word not in ("lost", "reclaimed")}
        assert moved == +totals
        released = {one.entry for one in model.at("released")} | model.stale
        assert {entry.decode() for entry in store.command("SMEMBERS", store.keys.released)} == released
        live = len(model.at(*IN_STREAM)) + len(model.at("scheduled"))
        ended = totals["done"] + totals["dead"] + totals["cancelled"]
        assert totals["enqueued"] + totals["replayed"] == ended + live

    @invariant()
    def side_tables_hold_what_is_live_and_no_more(self) -> None:
        store, model = self.store, self.model
        moved = {one.id: one.entry for one in model.at(*IN_STREAM) if one.entry != one.id}
        assert store.hash(store.keys.moved) == moved
        envelopes = store.raw_hash(store.keys.bodies)
        assert set(envelopes) == {one.id for one in model.at("scheduled")}
        for one, envelope in envelopes.items():
            record = model.jobs[one]
            assert split_envelope(envelope)[:2] == (record.kind.encode(), record.body)
        assert set(store.hash(store.keys.dead_ids)) == {one.id for one in model.at("dead")}
        assert set(store.hash(store.keys.suspects)) <= {one.entry for one in model.at(*IN_STREAM)}
        assert self._newest() == {name: value for one in model.jobs.values() for name, value in _newest(one)}
        for key in "klsnw":
            holder = store.command("GET", store.keys.dedupe(key))
            assert (holder.decode() if holder else None) == model.keys.get(key)

    def _newest(self) -> dict[str, tuple[int, bytes]]:
        """Return the hash of newer arguments, of each field the number and the body."""
        found = {}
        for name, value in self.store.raw_hash(self.store.keys.latest).items():
            number, _, envelope = value.partition(b" ")
            found[name] = (int(number), split_envelope(envelope)[1])
        return found


class KeyedHistories(Histories):
    """The same with a key for nearly every job, of each mode, and all that can befall a key."""

    KEYS = ("", "k", "s", "n", "n", "w", "w")
    DEEDS = (
        *"enqueue enqueue enqueue schedule claim claim run_due run_due take sweep".split(),
        *"start start complete complete complete fail bury bury snooze release give_up renew".split(),
        *"crash crash silence send_again lapse lapse cancel replay replay purge outdate outdate overtake".split(),
    )
    WANTED = (
        "duplicate refused",
        "taken over",
        "cancelled while running",
        "refused by a window after the end",
        "key freed at the start",
        "newest arguments taken",
        "newest followed",
        "newest followed an older success",
        "ended without its key",
    )


def _newest(one: Record) -> Iterator[tuple[str, tuple[int, bytes]]]:
    """Yield what the server must know of a job's newer arguments."""
    if one.latest and one.place not in (*ENDED, "dead"):
        yield one.id, (one.newer, one.own)
        if one.newest:
            yield f"{one.id}+", (one.newest[1], one.newest[0])


def _expected(one: Record) -> tuple[Any, ...] | None:
    """Return where the server must have a job; None for one that ended."""
    if one.place in IN_STREAM:
        return (one.place, one.entry, one.body, one.deliveries)
    if one.place == "scheduled":
        return ("scheduled", one.retrying, one.due)
    return ("dead", one.own or one.body, one.newer) if one.place == "dead" else None
