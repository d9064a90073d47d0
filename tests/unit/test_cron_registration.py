"""Crons of an app: what they take, and what is refused where they are written."""

from typing import Any

import pytest

from streamjobs import Context, InvalidOption, StreamJobs, UntilDone, UsageError
from streamjobs.core.cron import Cron
from streamjobs.kind import Kind


@pytest.fixture
def app() -> StreamJobs:
    return StreamJobs("memory://registration")


def only(app: StreamJobs) -> Cron:
    [cron] = app.registry.crons().values()
    return cron


def test_a_function_becomes_a_kind_with_a_cron_of_its_name(app: StreamJobs) -> None:
    @app.cron("*/5  * * * *", tz="Europe/Berlin", catch_up="none", jitter=1.5)
    async def clean(ctx: Context[Any]) -> None: ...

    cron = only(app)
    assert isinstance(clean, Kind)
    assert cron.name == cron.job.kind == clean.name
    assert (cron.schedule.text, cron.catch_up, cron.jitter_ms) == ("*/5 * * * * Europe/Berlin", "none", 1500)
    assert (cron.job.body, cron.job.queue) == (b"{}", "default")


def test_a_kind_may_have_several_crons_by_names_of_their_own(app: StreamJobs) -> None:
    @app.cron("0 6 * * *", name="report.eu", args={"region": "eu"})
    @app.every(3600, name="report.us", args={"region": "us"})
    @app.job(name="report", queue="slow", result_ttl=5)
    def report(region: str, depth: int = 2) -> None: ...

    us, eu = app.registry.crons().values()
    assert (us.name, us.schedule.text, us.catch_up) == ("report.us", "every 3600", "once")
    assert (eu.name, eu.schedule.text) == ("report.eu", "0 6 * * * UTC")
    assert [cron.job.kind for cron in (us, eu)] == ["report", "report"]
    assert (eu.job.queue, eu.job.body, eu.job.meta.result_ttl_ms) == ("slow", b'{"region":"eu","depth":2}', 5000)


def test_a_kind_may_have_options_of_its_own_for_a_cron(app: StreamJobs) -> None:
    kind = app.job(name="report")(lambda: None)

    app.every(60)(kind.options(queue="other", headers={"team": "a"}))

    assert (only(app).job.queue, only(app).job.meta.headers) == ("other", {"team": "a"})


def test_two_crons_of_one_name_are_refused(app: StreamJobs) -> None:
    kind = app.job(name="report")(lambda: None)
    app.every(60)(kind)

    with pytest.raises(InvalidOption, match=r"cron 'report' is registered already: give one of the two another name="):
        app.cron("* * * * *")(kind)


def _takes_a_region(region: str) -> None: ...


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (None, "Missing required argument 'region'"),
        ({}, "Missing required argument 'region'"),
        ({"region": 5}, "Expected `str`, got `int`"),
        ({"region": "eu", "other": 1}, "Unexpected keyword argument 'other'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_at_once(app: StreamJobs, args: Any, said: str) -> None:
    kind = app.job(name="report")(_takes_a_region)

    with pytest.raises(UsageError, match=said):
        app.every(60, args=args)(kind)
    assert app.registry.crons() == {}


@pytest.mark.parametrize(
    "options",
    [{"catch_up": "twice"}, {"jitter": -1}, {"jitter": 86_401}, {"jitter": "1"}, {"args": ["eu"]}, {"nonsense": 1}],
)
def test_options_out_of_range_are_refused_where_they_are_written(app: StreamJobs, options: Any) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        app.every(60, **options)


@pytest.mark.parametrize("name", ["", "a b", "x" * 201])
def test_a_name_that_is_none_is_refused(app: StreamJobs, name: str) -> None:
    with pytest.raises(InvalidOption, match="cron "):
        app.every(60, name=name)


@pytest.mark.parametrize("options", [{"delay": 1}, {"dedupe_key": "k"}])
def test_a_kind_whose_jobs_have_a_time_or_a_key_of_their_own_has_no_cron(app: StreamJobs, options: Any) -> None:
    kind = app.job(name="report")(lambda: None)

    with pytest.raises(InvalidOption, match="a slot has its time and its one run"):
        app.every(60)(kind.options(**options))


def test_a_kind_with_dedupe_has_a_cron_without_it(app: StreamJobs) -> None:
    kind = app.job(name="report", dedupe=UntilDone())(lambda: None)

    with pytest.raises(InvalidOption, match="a slot has its time and its one run"):
        app.every(60)(kind)
    app.every(60)(kind.options(dedupe=None))

    assert app.registry.crons()["report"].job.meta.dedupe_key == ""


def test_what_is_no_function_is_refused(app: StreamJobs) -> None:
    with pytest.raises(InvalidOption, match="expected a function"):
        app.every(60)(5)  # type: ignore[call-overload]
