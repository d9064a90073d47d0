"""What random histories of a queue share: a server, an empty queue, and that they came to what matters."""

import os
import secrets
from collections import Counter
from collections.abc import Sequence

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.leaks import check_keys
from tests.store.support import Store

STEPS = 40


class History(RuleBasedStateMachine):
    """One history of one queue on a real server; a subclass has its rules, and counts in `seen` what they came to."""

    url: str
    seen: Counter[str]
    WANTED: Sequence[str]
    """What the histories of a run must have come to, or they prove little."""

    def __init_subclass__(cls) -> None:
        cls.seen = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.namespace = f"t{secrets.token_hex(6)}"
        self.store = Store(self.url, self.namespace)

    def teardown(self) -> None:
        self.store.close()
        problems = check_keys(self.url, self.namespace)
        assert not problems, problems


def run_histories(machine: type[History], server_url: str, examples: int) -> None:
    """Try so many histories on a server; fail where one does, or where all together came to too little."""

    class OnThisServer(machine):  # type: ignore[valid-type,misc]
        url = server_url

    run_state_machine_as_test(
        OnThisServer,
        settings=settings(max_examples=examples, stateful_step_count=STEPS, derandomize=bool(os.environ.get("CI"))),
    )

    never = [name for name in machine.WANTED if not OnThisServer.seen[name]]
    assert not never, f"these histories never came to: {never}"
