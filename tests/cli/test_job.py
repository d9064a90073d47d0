"""job show, job cancel."""

from tests.cli.support import Line, error_line


def test_waiting_job(line: Line) -> None:
    job = line.enqueue("tests.add", "1")

    found = line.json("job", "show", job)

    assert (found["id"], found["state"], found["attempt"], found["worker"]) == (job, "waiting", 1, None)
    shown = line("job", "show", job).stdout
    assert '{"a":1,"b":0,"tags":null}' in shown
    assert "waiting" in shown


def test_scheduled_job_says_when(line: Line) -> None:
    job = line.enqueue("tests.add", "1", "--at", "2030-01-31T12:00:00+01:00")

    found = line.json("job", "show", job)

    assert (found["state"], found["due"]) == ("scheduled", "2030-01-31T11:00:00.000Z")
    assert "2030-01-31T11:00:00.000Z (in " in line("job", "show", job).stdout


def test_dead_job_says_why(line: Line) -> None:
    job = line.enqueue("tests.fail", "broken")
    line.work()

    found = line.json("job", "show", job)

    assert (found["state"], found["reason"], found["error"]) == ("dead", "exhausted", "ValueError: broken")
    assert "ValueError: broken" in line("job", "show", job).stdout


def test_done_job_is_finished(line: Line) -> None:
    job = line.enqueue("tests.add", "1")
    line.work()

    found = line.json("job", "show", job)

    assert (found["state"], found["kind"], found["args"]) == ("finished", None, None)
    assert line("job", "show", job).stdout.split()[-1] == "finished"


def test_unknown_and_impossible_ids(line: Line) -> None:
    line.enqueue("tests.add", "1")

    assert "there is no such job" in error_line(line("job", "show", "math:99999999999999-0", exit=4))
    assert "job id 'x'" in error_line(line("job", "show", "x", exit=2))


def test_cancelled_jobs_do_not_run(line: Line) -> None:
    one, two = line.enqueue("tests.fail"), line.enqueue("tests.fail", "--delay", "1h")

    assert line("job", "cancel", one, two).stdout == f"cancelled {one}\ncancelled {two}\n"

    line.work()
    assert line.json("dead", "list")["jobs"] == []
    assert line.stats()["queues"][0]["totals"]["cancelled"] == 2


def test_cancel_goes_on_after_one_that_cannot_be(line: Line) -> None:
    job = line.enqueue("tests.fail")

    result = line("job", "cancel", "default:99999999999999-0", job, exit=4)

    assert result.stdout == f"cancelled {job}\n"
    assert "there is no such job" in error_line(result)
    assert "has ended already" in error_line(line("job", "cancel", job, exit=5))


def test_cancel_as_document(line: Line) -> None:
    job = line.enqueue("tests.fail")

    assert line.json("job", "cancel", job)["cancelled"] == [{"id": job, "was_running": False}]


def test_run_now_makes_delayed_jobs_due(line: Line) -> None:
    one, two = (line.enqueue("tests.fail", "--delay", delay) for delay in ("1h", "400d"))

    assert line("job", "run-now", one, two).stdout == f"runs now: {one}\nruns now: {two}\n"

    line.work()
    assert len(line.json("dead", "list")["jobs"]) == 2
    assert "is dead, not scheduled" in error_line(line("job", "run-now", one, exit=5))


def test_reschedule_goes_on_after_one_that_cannot_be(line: Line) -> None:
    waits, delayed = line.enqueue("tests.fail"), line.enqueue("tests.fail", "--delay", "1h")

    result = line("job", "reschedule", waits, delayed, "--at", "2030-01-31T12:00:00Z", exit=5)

    assert result.stdout == f"rescheduled {delayed}\n"
    assert f"job {waits} is waiting, not scheduled; nothing was changed" in error_line(result)
    assert line.json("job", "show", delayed)["due"] == "2030-01-31T12:00:00.000Z"
    assert line.json("job", "reschedule", delayed, "--delay", "1s")["rescheduled"] == [{"id": delayed}]


def test_reschedule_needs_a_time_that_can_be(line: Line) -> None:
    job = line.enqueue("tests.fail", "--delay", "1h")

    assert "Give --delay or --at" in error_line(line("job", "reschedule", job, exit=2))
    assert "delay=0" in error_line(line("job", "reschedule", job, "--delay", "0", exit=2))
    assert "10 years" in error_line(line("job", "reschedule", job, "--delay", "9999d", exit=2))
    assert "no time zone" in line("job", "reschedule", job, "--at", "2030-01-31T12:00:00", exit=2).stderr
    assert "there is no such job" in error_line(line("job", "run-now", "math:99999999999999-0", exit=4))
