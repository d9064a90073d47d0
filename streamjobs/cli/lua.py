"""`streamjobs lua`: the scripts that the server runs."""

import click

from streamjobs.cli import show
from streamjobs.cli.commands import Group
from streamjobs.cli.settings import settings
from streamjobs.core.errors import NotFound


@click.group("lua", cls=Group)
def lua() -> None:
    """Show the scripts that the server runs."""


@lua.command("list")
def list_() -> None:
    """List the scripts, with the SHA-1 by which they are called."""
    from streamjobs.protocol import scripts

    found = [scripts.load(name) for name in scripts.names()]
    if settings().as_json:
        show.document("lua.list", scripts=[{"name": script.name, "sha1": script.sha} for script in found])
    else:
        show.Table("NAME", "SHA1", "~WHAT").print((one.name, one.sha, _what(one.text)) for one in found)


def _what(text: str) -> str:
    return text.partition("\n")[0].partition(": ")[2]


@lua.command("show")
@click.argument("name")
def show_(name: str) -> None:
    """Print a script as the server gets it, includes in place."""
    from streamjobs.protocol import scripts

    if name not in scripts.names():
        raise NotFound(f"script {name!r:.40}: there is none; there are {', '.join(scripts.names())}")
    click.echo(scripts.load(name).text, nl=False)


@lua.command()
def path() -> None:
    """Print the folder that holds the scripts."""
    from streamjobs.protocol import scripts

    click.echo(str(scripts.folder()))
