"""The log of a worker process: the library's own lines, as text or JSON, to stderr."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from streamjobs.cli.show import clean

FIELDS = ("job_id", "kind", "queue", "attempt")
"""What a line may say of its job, beside the message."""


class TextFormatter(logging.Formatter):
    """`time level message`, times in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # What a job's error says must not steer the terminal that shows it.
        return "\n".join(map(clean, super().format(record).split("\n")))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _time(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@contextmanager
def logging_to_stderr(style: str, level: int) -> Iterator[None]:
    """Show the library's log while the block runs; the root logger is left alone."""
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
