"""No history of claims, crashes, zombies and operators loses, doubles or revives a job."""

import pytest

from tests.conftest import BINARIES
from tests.model.history import run_histories
from tests.model.machine import Histories, KeyedHistories


@pytest.mark.parametrize(("machine", "examples"), [(Histories, 120), (KeyedHistories, 100)])
@pytest.mark.parametrize("server_url", list(BINARIES)[:1], indirect=True)
def test_every_history_ends_as_the_model_says(server_url: str, machine: type[Histories], examples: int) -> None:
    run_histories(machine, server_url, examples)
