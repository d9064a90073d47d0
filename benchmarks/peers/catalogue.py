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
    `drain_ratio`: what it had of the bare loop when its adapter was written and looked through, one by one
    and draining; with far less than that, something is wrong with the adapter, or with this run.
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
    _peer("arq", "arq hiredis uvloop", Config(200, 0.223, 0.0012), Config(2500, 0.243, 0.0151)),
    _peer("rq", "rq hiredis", Config(70, 0.216, 0.0004), Config(280, 0.208, 0.0017), handlers="plain"),
    _peer(
        "dramatiq",
        "dramatiq[redis] hiredis",
        Config(2100, 0.424, 0.0125),
        Config(5700, 0.457, 0.0341),
        handlers="plain",
    ),
    _peer(
        "celery", "celery[redis] hiredis", Config(1000, 0.168, 0.0059), Config(1400, 0.195, 0.0083), handlers="plain"
    ),
    _peer(
        "taskiq-list",
        "taskiq-redis hiredis uvloop",
        Config(3000, 0.275, 0.0177),
        Config(3500, 0.308, 0.0209),
        handlers="both",
        package="taskiq-redis",
        adapter="taskiq_list",
    ),
    _peer(
        "taskiq-stream",
        "taskiq-redis hiredis uvloop",
        Config(3200, 0.280, 0.0191),
        Config(4000, 0.331, 0.0235),
        handlers="both",
        package="taskiq-redis",
        adapter="taskiq_stream",
    ),
    _peer("streaq", "streaq uvloop", Config(1200, 0.282, 0.0070), Config(1600, 0.300, 0.0093), handlers="both"),
    # It imports typing_extensions and does not ask for it.
    _peer(
        "saq",
        "saq[redis] typing_extensions hiredis uvloop",
        Config(2200, 0.367, 0.0131),
        Config(3100, 0.393, 0.0183),
        handlers="both",
    ),
    _peer("huey", "huey redis hiredis", Config(2800, 0.628, 0.0167), Config(3000, 0.639, 0.0181), handlers="plain"),
    _peer("bullmq", "bullmq hiredis uvloop", Config(2100, 0.396, 0.0126), Config(2700, 0.411, 0.0160)),
    _peer(
        "bullmq-node",
        "bullmq ioredis",
        Config(4500, 0.462, 0.0269),
        Config(18000, 0.466, 0.1075),
        package="bullmq",
        adapter="bullmq_node",
        node=True,
    ),
    _peer("docket", "pydocket hiredis uvloop", Config(50), Config(1000), package="pydocket"),
)
