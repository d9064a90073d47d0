"""replay and purge: what an operator does with dead jobs, each done once however often it is asked for."""

from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Job, Meta
from streamjobs.protocol import intake, letters
from tests.store.support import CLOCK, Store, death, ending, job, job_of, later


def dead(store: Store, jobs: int = 1, kind: str = "mail") -> list[str]:
    """Let so many jobs be dead; return their ids."""
    claims = store.started(jobs, kind)
    store.bury(*(death(claim) for claim in claims))
    return [job_of(claim) for claim in claims]


def test_replayed_job_runs_again_under_its_id(store: Store) -> None:
    [one] = dead(store)

    assert store.replay(one) == ["OK"]

    [claim] = store.claim()
    assert (job_of(claim), claim.kind, claim.body) == (one, b"mail", b'{"n":0}')
    assert claim.meta == b'{"id":"%s","g":1}' % one.encode()
    assert store.state(one) == "running"
    assert store.left() == {"stream", "moved"}


def test_second_replay_does_nothing(store: Store) -> None:
    """Case J4: the job is dead or waiting, never neither and never both."""
    [one] = dead(store)
    meta = encode_meta(Meta(id=one, generation=1))
    call = letters.replay(store.keys, [letters.Replay(store.dead_entry(one), one, meta)])

    assert store.run(call) == ["OK"]
    assert store.run(call) == ["GONE"]
    assert store.depth() == 1


def test_late_copy_does_not_replay_a_later_death(store: Store) -> None:
    [one] = dead(store)
    meta = encode_meta(Meta(id=one, generation=1))
    call = letters.replay(store.keys, [letters.Replay(store.dead_entry(one), one, meta)])
    store.run(call)
    store.bury(death(store.claim()[0]))

    assert store.run(call) == ["GONE"]
    assert store.state(one) == "dead"


def test_replay_of_an_entry_under_another_job_does_nothing(store: Store) -> None:
    first, second = dead(store, 2)

    call = letters.replay(store.keys, [letters.Replay(store.dead_entry(first), second, b"")])

    assert store.run(call) == ["GONE"]
    assert len(store.dead_rows()) == 2


def test_replayed_job_ends_like_any_other(store: Store) -> None:
    [one] = dead(store)
    store.replay(one)

    store.complete_full(ending(store.claim()[0]))

    assert store.left() == set()
    assert store.state(one) == "finished"


def test_arguments_can_be_replaced(store: Store) -> None:
    [one] = dead(store)

    store.replay(one, body=b'=!{"n":7}')

    assert [claim.body for claim in store.claim()] == [b'=!{"n":7}']


def test_case_E3_a_held_dedupe_key_is_a_conflict(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.bury(death(claim, dedupe_key="k"))
    [holder] = store.enqueue(job(2, dedupe_key="k"))
    one = job_of(claim)

    assert store.replay(one, key="k") == [holder]

    assert store.state(one) == "dead"
    assert store.depth() == 1


def test_free_dedupe_key_is_taken_again(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.bury(death(claim, dedupe_key="k"))
    one = job_of(claim)

    assert store.replay(one, key="k") == ["OK"]

    assert store.enqueue(job(2, dedupe_key="k")) == [one]
    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS - 10_000


def test_case_H1_body_is_the_same_byte_by_byte_all_the_way(store: Store) -> None:
    body = b'{"a":393087288629462191,"b":9223372036854775807,"c":1e400,"d":[],"e":1.0,"f":"\xff\x00"}'
    [one] = store.schedule(Job("mail", body, "q", at_ms=1))
    store.promote()
    [claim] = store.claim()
    store.retry(later(claim, 1))
    store.promote(clock="9000000000000")
    [claim] = store.claim()
    store.bury(death(claim))
    store.replay(one)

    [claim] = store.claim()

    assert claim.body == body
    assert job_of(claim) == one


def test_purged_job_is_gone_for_good(store: Store) -> None:
    ids = dead(store, 3)
    entries = {one: store.dead_entry(one) for one in ids}
    call = letters.purge(store.keys, [letters.Purge(entries[one], one) for one in (ids[0], ids[2])])

    assert store.run(call) == ["OK", "OK"]
    assert store.run(call) == ["GONE", "GONE"]

    assert [row["id"].decode() for row in store.dead_rows()] == [ids[1]]
    assert store.state(ids[0]) == "finished"
    assert store.totals()["purged"] == 2


def test_purge_of_an_entry_under_another_job_does_nothing(store: Store) -> None:
    first, second = dead(store, 2)

    assert store.run(letters.purge(store.keys, [letters.Purge(store.dead_entry(first), second)])) == ["GONE"]
    assert len(store.dead_rows()) == 2


def test_counts_per_kind(store: Store) -> None:
    mail, web = dead(store, 2), dead(store, 2, "web")
    store.command("DEL", store.keys.totals)
    replays = [letters.Replay(store.dead_entry(one), one, b"") for one in (mail[0], web[0], "1-1")]

    store.run(letters.replay(store.keys, replays, str(CLOCK)))
    store.run(
        letters.purge(store.keys, [letters.Purge(store.dead_entry(one), one) for one in (mail[1], web[1])], str(CLOCK))
    )

    assert store.totals() == {"replayed": 2, "purged": 2}
    assert store.minute() == {"replayed:mail": 1, "replayed:web": 1, "purged:mail": 1, "purged:web": 1}
