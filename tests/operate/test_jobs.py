"""Single jobs, whose state changes between the look at them and the deed."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from streamjobs.core.errors import Refused
from streamjobs.core.job import Claim
from streamjobs.operate import jobs
from streamjobs.protocol.calls import Request
from tests.operate.driven import calls, driven
from tests.store.support import Store, death

ENDS: dict[str, Callable[[Store, Claim], object]] = {
    "finished": lambda store, claim: store.complete(claim),
    "dead": lambda store, claim: store.bury(death(claim)),
}


@pytest.mark.parametrize("state", ENDS)
def test_a_job_that_ends_just_before_it_is_cancelled_is_told_of_as_it_is_by_then(joined: Store, state: str) -> None:
    [job] = joined.add(1)

    def end(requests: list[Request[Any]]) -> None:
        if calls(requests, "cancel"):
            ENDS[state](joined, *joined.claim())

    with pytest.raises(Refused, match=re.escape(f"has ended already ({state}); nothing was changed")):
        driven(joined.executor, jobs.cancel(joined.keys, job, ""), end)
