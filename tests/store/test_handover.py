"""promise, adopt, handover: a dead job begins anew as another job, once, wherever it is interrupted."""

import pytest

from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Meta
from streamjobs.protocol import letters
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.letters import Adoption, Handover, Promised
from tests.store.support import CLOCK, Store, death, job, job_of

DAY_MS = 86_400_000


@pytest.fixture
def there(store: Store) -> Store:
    """Another queue on the same server."""
    other = Store("memory://", "unused")
    other.connections, other.executor = store.connections, store.executor
    other.keys = QueueKeys(store.keys.namespace, "there")
    other.make_group()
    return other


class Case:
    """One dead job on its way to another queue."""

    def __init__(self, store: Store, there: Store, key: str = "") -> None:
        self.store, self.there, self.key = store, there, key
        store.enqueue(job(1, dedupe_key=key) if key else job(1))
        [claim] = store.claim()
        store.bury(death(claim, dedupe_key=key))
        self.job = job_of(claim)
        self.entry = store.dead_entry(self.job)
        self.promised = Promised("", 0)

    def promise(self, queue: str = "there", clock: int = CLOCK) -> str:
        [word] = self.store.run(letters.promise(self.store.keys, queue, [(self.entry, self.job)], str(clock)))
        self.promised = letters.promised(word) or self.promised
        return word

    def adopt(self, clock: int = CLOCK, former: str = "") -> str:
        meta = encode_meta(Meta(generation=1, dedupe_key=self.key))
        item = Adoption(
            self.store.keys.job_id(self.job), self.entry, self.promised, b"mail", b'{"n":1}', meta, self.key,
            former=former,
        )  # fmt: skip
        [word] = self.there.run(letters.adopt(self.there.keys, [item], str(clock)))
        return word

    def hand_over(self, became: str, key: str = "") -> str:
        item = Handover(self.entry, self.job, self.promised, became, key)
        [word] = self.store.run(letters.handover(self.store.keys, [item], str(CLOCK)))
        return word

    def replay(self) -> str:
        [word] = self.store.run(letters.replay(self.store.keys, [letters.Replay(self.entry, self.job, b"")]))
        return word

    def purge(self, clock: int = CLOCK) -> str:
        item = letters.Purge(self.entry, self.job)
        [word] = self.store.run(letters.purge(self.store.keys, [item], str(clock)))
        return word


def test_a_dead_job_begins_anew_in_another_queue(store: Store, there: Store) -> None:
    case = Case(store, there)

    assert case.promise() == f"there {CLOCK}"
    assert store.lookup(case.job)["promise"] == f"there {CLOCK}".encode()
    became = case.adopt()
    assert case.hand_over(f"there:{became}") == "OK"

    assert (store.left(), there.left()) == (set(), {"stream"})
    [claim] = there.claim()
    assert (job_of(claim), claim.kind, claim.body) == (became, b"mail", b'{"n":1}')
    found = store.lookup(case.job)
    assert (found["state"], found["became"]) == (b"finished", f"there:{became}".encode())
    assert (store.totals()["handed"], there.totals()["enqueued"]) == (1, 1)


def test_each_step_done_again_changes_nothing(store: Store, there: Store) -> None:
    case = Case(store, there)

    assert case.promise() == case.promise(clock=CLOCK + 5) == case.promise("elsewhere") == f"there {CLOCK}"
    became = case.adopt()
    assert case.adopt() == case.adopt(clock=CLOCK + DAY_MS) == became
    assert [case.hand_over(f"there:{became}") for _ in range(2)] == ["OK", "GONE"]
    assert case.promise() == "GONE"
    assert case.adopt() == became

    assert there.depth() == 1
    assert (store.totals()["handed"], there.totals()["enqueued"]) == (1, 1)


def test_what_is_promised_is_neither_replayed_nor_purged(store: Store, there: Store) -> None:
    case = Case(store, there)
    case.promise()

    assert case.replay() == case.purge() == f"there {CLOCK}"

    assert (store.depth(), store.state(case.job)) == (0, "dead")
    assert store.cancel(case.job) == ["DEAD"]


def test_what_was_replayed_first_is_not_promised(store: Store, there: Store) -> None:
    case = Case(store, there)
    case.replay()

    assert case.promise() == "GONE"
    assert case.hand_over("there:1-0") == "GONE"


def test_a_row_deleted_by_hand_is_not_promised(store: Store, there: Store) -> None:
    case = Case(store, there)
    store.command("XDEL", store.keys.dead, case.entry)

    assert case.promise() == "GONE"
    store.command("DEL", store.keys.dead_ids)


def test_a_held_key_ends_the_promise_for_all_who_ask(store: Store, there: Store) -> None:
    """Though the key is given back in between: else one would begin it there while another put it back here."""
    case = Case(store, there, "k")
    [holder] = there.enqueue(job(2, dedupe_key="k"))
    case.promise()

    assert case.adopt() == f"!{holder}"
    there.cancel_owned(holder, "k")
    assert case.adopt() == f"!{holder}"
    assert case.hand_over("") == "OK"

    assert case.hand_over("") == "GONE"
    assert (store.state(case.job), store.lookup(case.job)["promise"], there.depth()) == ("dead", b"", 0)
    assert case.promise(clock=CLOCK + 1) == f"there {CLOCK + 1}"
    assert there.command("GET", there.keys.dedupe("k")) is None
    became = case.adopt(clock=CLOCK + 1)
    assert there.command("GET", there.keys.dedupe("k")).decode() == became
    case.hand_over(f"there:{became}")
    there.complete(*there.claim())
    there.command("DEL", there.keys.dedupe("k"))


def test_a_promise_that_was_renewed_is_not_ended_by_who_knew_the_old_one(store: Store, there: Store) -> None:
    case = Case(store, there)
    case.promise()
    old = case.promised
    case.hand_over("")
    case.promise(clock=CLOCK + 1)
    new, case.promised = case.promised, old

    assert case.hand_over("there:1-0") == case.hand_over("") == "GONE"

    case.promised = new
    assert store.lookup(case.job)["promise"].decode() == str(new)
    assert case.hand_over("") == "OK"


def test_a_new_job_in_the_same_queue_takes_the_key_of_the_old_one(store: Store) -> None:
    """A window outlives the death of its job: the key is the old one's still."""
    case = Case(store, store, "k")
    store.command("SET", store.keys.dedupe("k"), case.job, "PX", 60_000)
    case.promise("q")

    became = case.adopt(former=case.job)
    assert case.hand_over(f"q:{became}", "k") == "OK"

    assert store.command("GET", store.keys.dedupe("k")).decode() == became
    assert store.lookup(case.job)["became"].decode() == f"q:{became}"
    assert became != case.job
    store.cancel_owned(became, "k")


def test_the_key_that_the_old_one_held_here_is_given_back(store: Store, there: Store) -> None:
    case = Case(store, there, "k")
    store.command("SET", store.keys.dedupe("k"), case.job, "PX", 60_000)
    case.promise()

    case.hand_over(f"there:{case.adopt()}", "k")

    assert store.command("EXISTS", store.keys.dedupe("k")) == 0
    there.command("DEL", there.keys.dedupe("k"))


def test_a_promise_of_long_ago_is_kept_only_where_its_end_is_known(store: Store, there: Store) -> None:
    known, unknown = Case(store, there), Case(store, there)
    for case in (known, unknown):
        case.promise()
    became = known.adopt()

    assert known.adopt(clock=CLOCK + 8 * DAY_MS) == became
    assert unknown.adopt(clock=CLOCK + 8 * DAY_MS) == "UNSURE"
    assert unknown.adopt(clock=CLOCK + 6 * DAY_MS) != "UNSURE"
    assert unknown.purge(clock=CLOCK + 6 * DAY_MS) == str(unknown.promised)
    assert unknown.purge(clock=CLOCK + 8 * DAY_MS) == "OK"


def test_newer_arguments_come_to_the_job_that_it_became(store: Store, there: Store) -> None:
    case = Case(store, there, "k")
    case.promise()
    meta = encode_meta(Meta(generation=1, dedupe_key="k", dedupe_mode="l"))
    item = Adoption("q:1-0", case.entry, case.promised, b"mail", b'{"n":1}', meta, "k", newer=3)
    [became] = there.run(letters.adopt(there.keys, [item], str(CLOCK)))

    assert there.enqueue(job(7, dedupe_key="k", dedupe_mode="l")) == [became]

    [begun] = there.start(*there.claim())
    assert begun is not None
    assert (begun.newer, begun.body) == (4, b'{"n":7}')
    there.cancel_owned(became, "k")


def test_what_is_kept_of_it_expires(store: Store, there: Store) -> None:
    case = Case(store, there)
    case.promise()
    case.hand_over(f"there:{case.adopt()}")

    promise = there.keys.promise(store.keys.job_id(case.job), case.entry, CLOCK)
    assert 13 * DAY_MS < there.command("PTTL", promise) <= 14 * DAY_MS
    assert 6 * DAY_MS < store.command("PTTL", store.keys.became(case.job)) <= 7 * DAY_MS
