"""Variants that have no bare loop beside them: repeated in turn, each shown with what it has found.

A step of one variant follows a step of the other, so that a slow minute of the machine hits all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from .document import Result
from .duel import Void
from .lab import SideFailed
from .measure import Sample, Spread
from .progress import tell

Once = Callable[[], Sample]
"""One repeat of one variant, from nothing to nothing."""


def trials(scenario: str, variants: Mapping[str, Once], repeats: int) -> Iterator[Result]:
    """Yield a result for each variant; it is void if any repeat of it was, and is then not tried again."""
    samples: dict[str, list[Sample]] = {variant: [] for variant in variants}
    void: dict[str, str] = {}
    steps, done = repeats * len(variants), 0
    for repeat in range(repeats):
        order = list(variants.items())
        for variant, once in order if repeat % 2 == 0 else reversed(order):
            done += 1
            if variant in void:
                continue
            try:
                samples[variant].append(once())
                said = _said(samples[variant][-1])
            except (Void, SideFailed) as error:
                said = void[variant] = str(error)
            tell(scenario, done, steps, f"{variant}: {said}")
    for variant, found in samples.items():
        if variant in void:
            yield Result(scenario=scenario, variant=variant, jobs=0, repeats=repeats, void=void[variant])
        else:
            yield result_of(scenario, variant, found)


def result_of(scenario: str, variant: str, samples: Iterable[Sample]) -> Result:
    """Return the medians and spreads of some samples; of a sample without jobs only its figures count."""
    found = list(samples)
    figures = {name: Spread.of((one.figures[name] for one in found), 3) for name in found[0].figures}
    jobs = found[0].jobs
    if not jobs:
        return Result(scenario=scenario, variant=variant, jobs=0, repeats=len(found), figures=figures)
    return medians(scenario, variant, jobs, found, figures)


def medians(scenario: str, variant: str, jobs: int, samples: Sequence[Sample], figures: dict[str, Spread]) -> Result:
    """Return what these samples, of so many jobs each, come to, with these figures."""
    return Result(
        scenario=scenario,
        variant=variant,
        jobs=jobs,
        repeats=len(samples),
        jobs_per_s=Spread.of((one.jobs_per_s for one in samples), 0),
        client_us_per_job=Spread.of((one.client_us for one in samples), 3).median,
        server_us_per_job=Spread.of((one.server_us for one in samples), 3).median,
        figures=figures,
    )


def _said(sample: Sample) -> str:
    said = [f"{value:,.4g} {name}" for name, value in sample.figures.items()]
    if sample.jobs:
        said.insert(0, f"{sample.jobs_per_s:,.0f} jobs/s")
    return ", ".join(said[:3])
