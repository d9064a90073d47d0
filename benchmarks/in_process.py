"""The job that runs in processes: they find a kind only by importing the module that registers it."""

from streamjobs import StreamJobs

from .jobs import KIND, QUEUE

app = StreamJobs("redis://localhost")
"""Works where an order says, by `use`."""


@app.job(name=KIND, queue=QUEUE, process=True)
def noop(number: int, text: str) -> None:
    """Do nothing."""
