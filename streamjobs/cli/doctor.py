"""`streamjobs doctor`."""

import textwrap
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import show
from streamjobs.cli.commands import Command
from streamjobs.cli.endings import FAILED
from streamjobs.cli.settings import settings
from streamjobs.core.roles import Role

if TYPE_CHECKING:
    from streamjobs.core.server import Finding
    from streamjobs.operate.doctor import Report

_ROLES = click.Choice([role.value for role in Role])
_SHOWN = {"ok": "ok", "warn": "warn", "fail": "FAIL", "unknown": "?"}
_STYLES: dict[str, dict[str, Any]] = {
    "ok": {"fg": "green"},
    "warn": {"fg": "yellow"},
    "fail": {"fg": "red", "bold": True},
    "unknown": {},
}
_LEFT = 4


@click.command(cls=Command)
@click.option("--role", type=_ROLES, default="worker", help="Whose rights are looked at; default worker.")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
def doctor(role: str, strict: bool) -> int:
    """Look over the server and the queues: what is wrong, what may be lost, and what to do about it.

    Exit code 1 when something FAILs; with --strict also on a warning. What this user may not see is `?`.
    """
    from streamjobs.client.talk import talk
    from streamjobs.operate.doctor import examine

    executor, _ = settings().reach()
    report = talk(executor, examine(settings().connections.target, settings().namespace, Role(role)))
    if settings().as_json:
        show.document("doctor", **_fields(report, role))
    else:
        _print(report)
    return FAILED if report.count("fail") or (strict and report.count("warn")) else 0


def _fields(report: "Report", role: str) -> dict[str, Any]:
    return {
        "time": show.time_of(report.at_ms),
        "namespace": settings().namespace,
        "url": settings().connections.target.text,
        "role": role,
        "fails": report.count("fail"),
        "warnings": report.count("warn"),
        "unknown": report.count("unknown"),
        "findings": [
            {
                "check": finding.about.value,
                "level": finding.level.value,
                "what": finding.what or None,
                "advice": finding.advice or None,
            }
            for finding in report.findings
        ],
    }


def _print(report: "Report") -> None:
    wide = max(len(finding.about.value) for finding in report.findings)
    for finding in report.findings:
        _print_finding(finding, wide)
    show.line()
    counts = [(report.count(level), _SHOWN[level]) for level in ("fail", "warn", "unknown")]
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    show.line(f"{settings().connections.target.text}, namespace {settings().namespace}: {told or 'all is well'}")


def _print_finding(finding: "Finding", wide: int) -> None:
    mark = click.style(_SHOWN[finding.level.value].ljust(_LEFT), **_STYLES[finding.level.value])
    indent = _LEFT + 2 + wide + 2
    lines = _wrapped(finding.what or "the server does not say", indent)
    if finding.advice:
        lines += _wrapped(f"→ {finding.advice}", indent)
    click.echo(f"{mark}  {finding.about.value.ljust(wide)}  {lines[0]}", color=settings().color)
    for line in lines[1:]:
        click.echo(" " * indent + line, color=settings().color)


def _wrapped(text: str, indent: int) -> list[str]:
    room = max(30, show.screen_columns() - indent)
    return textwrap.wrap(show.clean(text), room, break_long_words=False, break_on_hyphens=False)
