"""Who takes part: what is installed for each, and about how fast it is."""

from typing import Literal

import msgspec

CONFIGS = ("default", "fast")
BARE = "bare"
OURS = "streamjobs"


Handlers = Literal["awaited", "plain", "both"]
"""Which functions its workers run: those of asyncio, others, in threads or processes, or both."""


class Config(msgspec.Struct, frozen=True):
    """One configuration of a peer.

    `drains`: about how many jobs a second one worker does, from which follows how many it is given. `one_ratio` and
    `drain_ratio`: what it had of the bare loop when its adapter was looked through, one by one and draining, on a
    quiet machine or on a busy one, where that was less; with far less, something is wrong with the adapter, or with
    this run.
    """

    drains: int
    one_ratio: float = 0.0
    drain_ratio: float = 0.0


class Peer(msgspec.Struct, frozen=True):
    """One job system. `packages` are for an environment of its own; without any it runs in ours."""

    name: str
    package: str
    packages: tuple[str, ...]
    configs: tuple[Config, Config]
    """By default, and as fast as its documentation shows."""
    adapter: str = ""
    handlers: Handlers = "awaited"
    node: bool = False
    """Whether its packages are of npm, and its adapter runs Node."""

    @property
    def module(self) -> str:
        """What its adapter is called."""
        return f"adapters.{self.adapter or self.name}_jobs"


def _peer(
    name: str,
    packages: str,
    default: Config,
    fast: Config,
    *,
    handlers: Handlers = "awaited",
    package: str = "",
    adapter: str = "",
    node: bool = False,
) -> Peer:
    return Peer(name, package or name, tuple(packages.split()), (default, fast), adapter, handlers, node)


PEERS: tuple[Peer, ...] = (
    _peer(BARE, "", Config(100_000), Config(100_000), package="redis"),
    _peer(OURS, "", Config(80_000), Config(100_000), handlers="both"),
    _peer("arq", "arq hiredis uvloop", Config(200, 0.143, 0.0020), Config(2500, 0.156, 0.0164)),
    _peer("rq", "rq hiredis", Config(70, 0.139, 0.0006), Config(280, 0.134, 0.0022), handlers="plain"),
    _peer(
        "dramatiq",
        "dramatiq[redis] hiredis",
        Config(2100, 0.272, 0.0211),
        Config(5700, 0.294, 0.0576),
        handlers="plain",
    ),
    _peer(
        "celery", "celery[redis] hiredis", Config(1000, 0.098, 0.0100), Config(1400, 0.125, 0.0136), handlers="plain"
    ),
    _peer(
        "taskiq-list",
        "taskiq-redis hiredis uvloop",
        Config(3000, 0.176, 0.0241),
        Config(3500, 0.198, 0.0276),
        handlers="both",
        package="taskiq-redis",
        adapter="taskiq_list",
    ),
    _peer(
        "taskiq-stream",
        "taskiq-redis hiredis uvloop",
        Config(3200, 0.174, 0.0250),
        Config(4000, 0.178, 0.0270),
        handlers="both",
        package="taskiq-redis",
        adapter="taskiq_stream",
    ),
    _peer("streaq", "streaq uvloop", Config(1200, 0.136, 0.0096), Config(1600, 0.185, 0.0092), handlers="both"),
    # It imports typing_extensions and does not ask for it.
    _peer(
        "saq",
        "saq[redis] typing_extensions hiredis uvloop",
        Config(2200, 0.236, 0.0156),
        Config(3100, 0.252, 0.0166),
        handlers="both",
    ),
    _peer("huey", "huey redis hiredis", Config(2800, 0.403, 0.0282), Config(3000, 0.368, 0.0307), handlers="plain"),
    _peer("bullmq", "bullmq hiredis uvloop", Config(2100, 0.254, 0.0189), Config(2700, 0.264, 0.0159)),
    _peer(
        "bullmq-node",
        "bullmq ioredis",
        Config(4500, 0.200, 0.0285),
        Config(18000, 0.170, 0.0708),
        package="bullmq",
        adapter="bullmq_node",
        node=True,
    ),
    _peer(
        "docket", "pydocket hiredis uvloop", Config(50, 0.165, 0.0005), Config(1000, 0.130, 0.0251), package="pydocket"
    ),
)
