"""Log lines as JSON, with the job that they are about."""

import json
import logging
from datetime import UTC, datetime

from streamjobs.worker.context import current

FIELDS = ("job_id", "kind", "queue", "attempt")
"""What a line may say of its job, beside the message."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (RFC 3339, UTC), `level`, `logger`, `message`, and `traceback` where there is one.

    A line about a job, or logged by whatever logger while its handler runs, in that handler's task or thread, has
    `job_id`, `kind`, `queue` and `attempt` too. For any handler of the logging module; streamjobs sets none up
    itself but in `streamjobs worker`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; all of it ASCII, so that nothing a job says can break it or steer a terminal."""
        line: dict[str, object] = {
            "time": time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        execution = current.get()
        known = execution.log_fields if execution else {}
        line |= known | {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def time_of(record: logging.LogRecord) -> str:
    """Return when a record was made, in RFC 3339, in UTC."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
