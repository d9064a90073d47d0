"""No history of claims, crashes, zombies and operators loses, doubles or revives a job."""

import os

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import BINARIES
from tests.model.machine import Histories, KeyedHistories

STEPS = 40


@pytest.mark.parametrize(("machine", "examples"), [(Histories, 120), (KeyedHistories, 100)])
@pytest.mark.parametrize("server_url", list(BINARIES)[:1], indirect=True)
def test_every_history_ends_as_the_model_says(server_url: str, machine: type[Histories], examples: int) -> None:
    class OnThisServer(machine):  # type: ignore[valid-type,misc]
        url = server_url

    run_state_machine_as_test(
        OnThisServer,
        settings=settings(max_examples=examples, stateful_step_count=STEPS, derandomize=bool(os.environ.get("CI"))),
    )

    never = [name for name in machine.WANTED if not OnThisServer.seen[name]]
    assert not never, f"these histories never came to: {never}"
