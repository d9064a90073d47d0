"""What all commands share: options that may stand anywhere, late imports, errors in one line."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from streamjobs.cli.endings import ended_by
from streamjobs.cli.settings import Settings

COMPLETION = "_STREAMJOBS_COMPLETE"
"""The variable by which a shell asks what a word may become."""
Place = tuple[str, str, str]
"""Where a command is: module, name in it, and its line in the list of commands."""


class GlobalOption(click.Option):
    """An option that every command takes, before or after its name."""


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    settings = ctx.find_object(Settings)
    if settings is None:
        settings = ctx.find_root().obj = Settings()
    if value == "":
        raise click.BadParameter("it is empty; leave the option out, or give it a value", ctx, param)
    if value not in (None, False):
        settings.flags[str(param.name)] = value


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from streamjobs import __version__

        click.echo(f"streamjobs {__version__}")
        ctx.exit()


def global_options() -> list[click.Parameter]:
    """Return new copies of the options that every command takes."""

    def option(*names: str, **attributes: Any) -> GlobalOption:
        return GlobalOption(names, **{"expose_value": False, "callback": _note, **attributes})

    return [
        option("--url", metavar="URL", help="The server; else the app's own, else STREAMJOBS_URL."),
        option("--namespace", metavar="NS", help="The first part of every key; else as for --url; default sj."),
        option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        option("--color", type=click.Choice(["auto", "always", "never"]), help="Default auto."),
        option("-q", "--quiet", is_flag=True, help="Say less on stderr."),
        option("-v", "--verbose", is_flag=True, help="Say more; tracebacks with errors."),
        option("--version", is_flag=True, is_eager=True, callback=_version, help="Print the version."),
    ]


class _Common(click.Command):
    """Adds the global options, and lists them apart."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params += global_options()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            # Arguments stand in the line of usage, and are told of in the text below it.
            if not isinstance(param, click.Option):
                continue
            if record := param.get_help_record(ctx):
                (common if isinstance(param, GlobalOption) else own).append(record)
        for title, records in (("Options", own), ("Global options", common)):
            with formatter.section(title):
                formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from streamjobs.cli import examples

        super().format_epilog(ctx, formatter)
        if not isinstance(self, click.Group) and (lines := examples.of(ctx.command_path)):
            with formatter.section("Examples"):
                # Not wrapped: they are to be copied.
                formatter.write("".join(f"  {line}\n" for line in lines))


class Command(_Common):
    """One command."""


class Group(_Common, click.Group):
    """Some commands under one name."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:
        # Without a command it is an error of one line, not a page of help.
        super().__init__(*args, **{"no_args_is_help": False, **attributes})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names in the order in which they are written."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named; an error for none, or for one that is not there, lists them."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if error.ctx is not ctx or ctx.invoked_subcommand is not None:
                raise
            said = error.format_message().rstrip(".")
            raise click.UsageError(f"{said}; there are {', '.join(self.list_commands(ctx))}", ctx) from error


class LazyGroup(Group):
    """A group whose commands are imported when they are used; its own help imports none."""

    def __init__(self, *args: Any, commands_in: Mapping[str, Place], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._places = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self._places.get(cmd_name)
        if place is None:
            return None
        found: click.Command = getattr(import_module(place[0]), place[1])
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self._places.items()])


class Root(LazyGroup):
    """The whole command line: what any command raises becomes one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit with its code.

        Raises:
            SystemExit: always; 0 for success, else as docs/cli.md lists them.
        """
        settings = Settings()
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        settings.words = tuple(words)
        if instruction := os.environ.get(COMPLETION):
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, {"obj": settings}, prog_name or "streamjobs", COMPLETION, instruction))
        try:
            with self.make_context(prog_name or "streamjobs", words, obj=settings, **extra) as ctx:
                code = self.invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BaseException as error:
            code = ended_by(error, verbose=settings.verbose)
        sys.exit(code or 0)
