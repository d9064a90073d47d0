"""The log of a worker process: the library's own lines, as text or JSON, to stderr."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from streamjobs.cli.show import clean


class TextFormatter(logging.Formatter):
    """`time level message`, times in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # What a job's error says must not steer the terminal that shows it.
        return "\n".join(map(clean, super().format(record).split("\n")))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        from streamjobs.worker.logs import time_of

        return time_of(record)


@contextmanager
def logging_to_stderr(style: str, level: int) -> Iterator[None]:
    """Show the library's log while the block runs; the root logger is left alone."""
    from streamjobs.worker.logs import JsonFormatter

    logger = logging.getLogger("streamjobs")
    before = logger.level, logger.propagate
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logger.addHandler(handler)
    logger.setLevel(level)
    # An app that sets up the root logger itself would print every line twice.
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
