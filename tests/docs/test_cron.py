"""docs/cron.md is true: its file is written and its commands run, in order, in one folder."""

from tests.docs.blocks import blocks, commands
from tests.docs.test_readme import ROOT, Shell, shell

__all__ = ["shell"]


def test_the_page_on_crons_does_what_it_says(shell: Shell) -> None:
    for block in blocks(ROOT / "docs" / "cron.md"):
        if block.file:
            (shell.folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command in commands(block):
                shell.run(command)
    shell.close()
