"""`streamjobs completion`."""

import click

from streamjobs.cli.commands import COMPLETION, Command


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script by which SHELL (bash, zsh or fish) completes commands, options, and names of queues and kinds.

    Names of queues come from the server; where it does not answer within a second, there are none. Names of kinds
    come from the app that -A or STREAMJOBS_APP names, which is imported for that.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(context.find_root().command, {}, "streamjobs", COMPLETION).source(), nl=False)
