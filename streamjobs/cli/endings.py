"""How a command ends: every error is one line on stderr that says what, where and what to do."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click

from streamjobs.cli.show import clean
from streamjobs.core.errors import (
    JobEnded,
    NotFound,
    OutcomeUnknown,
    Refused,
    StreamJobsError,
    Unavailable,
    UsageError,
)

FAILED = 1
USAGE = 2
UNREACHABLE = 3
NOT_FOUND = 4
REFUSED = 5
INTERRUPTED = 130
LONGEST = 1500
"""Characters of an error's text."""


class Failed(StreamJobsError):
    """A command that did not do all that it was asked for.

    Attributes:
        code: its exit code.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def exit_code(error: StreamJobsError) -> int:
    """Return the exit code that an error of ours has on the command line."""
    match error:
        case Failed():
            return error.code
        case UsageError():
            return USAGE
        case Unavailable() | OutcomeUnknown():
            return UNREACHABLE
        case NotFound():
            return NOT_FOUND
        case Refused():
            return REFUSED
        case JobEnded():
            return FAILED
    return FAILED


def complain(message: str) -> None:
    """Print an error as one line; of one that quotes a very long word, what stands before and behind is shown."""
    text = clean(" ".join(message.split()))
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}…{text[-LONGEST // 4 :]}"
    click.echo(f"error: {text}", err=True)


def fail_by(errors: Sequence[StreamJobsError]) -> None:
    """End a command by what could not be done, if there is any: the first error gives the exit code."""
    for error in errors[:-1]:
        complain(str(error))
    if errors:
        raise Failed(str(errors[-1]), exit_code(errors[0]))


def ended_by(error: BaseException, *, verbose: bool) -> int:
    """Say on stderr what ended a command, and return its exit code. A traceback only when `verbose`."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case SystemExit():
            return error.code if isinstance(error.code, int) else FAILED
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case OSError(errno=errno.EPIPE):
            _drop_output()
            return 0
        case OSError(errno=errno.ENOSPC):
            _drop_output()
            complain("no space is left to write to: make room there, or write elsewhere")
            return FAILED
    if verbose and not isinstance(error, click.ClickException):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    match error:
        case click.ClickException():
            complain(_usage(error))
            return USAGE
        case StreamJobsError():
            complain(str(error))
            return exit_code(error)
    complain(f"{type(error).__name__}: {error} (unexpected; -v shows the traceback)")
    return FAILED


def _usage(error: click.ClickException) -> str:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" (see {ctx.command_path} --help)" if ctx else ""
    return error.format_message().rstrip(".") + hint


def _drop_output() -> None:
    """Let the rest of stdout vanish: nobody reads it (`head` has seen enough), or there is no room for it."""
    # Python flushes stdout once more when it exits, and would complain then.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
