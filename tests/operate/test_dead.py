"""Dead jobs are grouped by what they have in common, looked at, and purged in bounded batches."""

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import Refused
from streamjobs.operate import batches, dead
from streamjobs.operate.batches import Done
from streamjobs.operate.scan import Scan
from streamjobs.operate.selection import Selection
from streamjobs.protocol import letters
from tests.operate.test_scan import all_of
from tests.store.support import Store, death, job, job_of

ALL = Selection()


@pytest.fixture
def died(store: Store) -> Store:
    """A queue with 7 dead of kind mail and 3 of kind web."""
    store.make_group()
    for kind, count, reason, error in (
        ("mail", 7, "exhausted", "TimeoutError: still running after %d s"),
        ("web", 3, "permanent", "ValueError: no user 'u%d'"),
    ):
        for number, claim in enumerate(store.started(count, kind)):
            store.bury(death(claim, reason, error % number))
    return store


def test_errors_that_differ_in_numbers_and_quotes_are_one_group(died: Store) -> None:
    newest = all_of(died)

    groups = talk(died.executor, dead.groups(Scan([died.keys], ALL, first=2)))

    assert [(g.count, g.kind, g.reason, g.error_type, g.error) for g in groups] == [
        (7, "mail", "exhausted", "TimeoutError", "TimeoutError: still running after N s"),
        (3, "web", "permanent", "ValueError", "ValueError: no user '…'"),
    ]
    assert all(group.first_ms <= group.last_ms for group in groups)
    assert [group.newest for group in groups] == [newest[3].id, newest[0].id]


@pytest.mark.parametrize("error", ["", "no type", ": text", "two words: text"])
def test_an_error_without_a_type_is_grouped_by_its_text(store: Store, error: str) -> None:
    store.make_group()
    for claim in store.started(1):
        store.bury(death(claim, "exhausted", error))

    [group] = talk(store.executor, dead.groups(Scan([store.keys], ALL)))

    assert (group.error_type, group.error) == ("", error)


def test_purge_takes_what_was_read_and_no_more(died: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_JOBS", 2)
    told: list[int] = []

    source = Scan([died.keys], Selection(kinds=("mail",)))
    done = talk(died.executor, dead.purge(died.keys.namespace, source, lambda whole: told.append(whole.done)))

    assert (done.done, told) == (7, [2, 4, 6, 7])
    assert [job.kind for job in all_of(died)] == ["web"] * 3


def test_what_goes_elsewhere_is_not_purged(died: Store) -> None:
    first, second, *_ = all_of(died)
    died.run(letters.promise(died.keys, "web", [(first.dead_entry, first.id.partition(":")[2])]))

    talk(died.executor, dead.purge_these(died.keys.namespace, [first, second], whole := Done()))

    assert (whole.done, list(whole.left)) == (1, [first.id])
    assert "its replay to web was interrupted" in whole.left[first.id]


def test_examine_names_who_holds_the_key(store: Store) -> None:
    store.make_group()
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.bury(death(claim, dedupe_key="k"))
    job_id = store.keys.job_id(job_of(claim))
    assert talk(store.executor, dead.examine(store.keys.namespace, job_id)).replayable

    [holder] = store.enqueue(job(2, dedupe_key="k"))

    found = talk(store.executor, dead.examine(store.keys.namespace, job_id))
    assert (found.job.id, found.holder, found.replayable) == (job_id, store.keys.job_id(holder), False)
    assert found.why == f"{found.holder} holds its dedupe key"


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("exhausted", ""),
        ("expired", "it does not expire again"),
        ("undecodable", "mind that no worker could read it as it is: see the error"),
    ],
)
def test_examine_says_what_is_to_be_known_of_a_replay(store: Store, reason: str, why: str) -> None:
    store.make_group()
    [claim] = store.started(1)
    store.bury(death(claim, reason))
    job_id = store.keys.job_id(job_of(claim))

    found = talk(store.executor, dead.examine(store.keys.namespace, job_id))

    assert (found.replayable, found.why) == (True, why)
    store.replay(job_of(claim))
    with pytest.raises(Refused, match="is not dead but waiting"):
        talk(store.executor, dead.examine(store.keys.namespace, job_id))
