"""What `streamjobs worker -A benchmarks.chaos.worker:app` runs: the app of a soak, which records what it does."""

from contextlib import ExitStack

from streamjobs.client import Connections
from tests.faults.recorder import watch_calls

from .jobs import REPLY_S, make_app, open_recorder

_recorder = open_recorder("worker")
_for_life = ExitStack()
_for_life.enter_context(watch_calls(_recorder))

app = make_app(_recorder)
app.connections = Connections(app.connections.target, reply_s=REPLY_S)
