"""Do the same to each of several things that were named."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from streamjobs.cli import show
from streamjobs.cli.endings import fail_by
from streamjobs.cli.settings import settings
from streamjobs.core.errors import NotFound, Refused, StreamJobsError

if TYPE_CHECKING:
    from streamjobs.client.talk import Talk

Row = dict[str, Any]


def each(
    document: str,
    field: str,
    names: Iterable[str],
    deed: "Callable[[str], Talk[Any]]",
    tell: Callable[[str, Any], tuple[str, Row]],
) -> None:
    """Do it to each, once; those to which it cannot be done are named at the end, after all the others.

    Args:
        document: what is printed as JSON.
        field: which of its fields has a row for each.
        names: to what it is done.
        deed: does it to one.
        tell: says what came of one, as a line and as a row.
    """
    from streamjobs.client.talk import talk

    rows = []
    errors: list[StreamJobsError] = []
    executor, _ = settings().reach()
    for name in dict.fromkeys(names):
        try:
            done = talk(executor, deed(name))
        except (NotFound, Refused) as error:
            errors.append(error)
            continue
        line, row = tell(name, done)
        rows.append(row)
        if not settings().as_json:
            show.line(line)
    if settings().as_json:
        show.document(document, **{field: rows})
    fail_by(errors)
