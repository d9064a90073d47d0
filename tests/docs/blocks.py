"""Fenced code blocks of a Markdown file, and the commands in its console blocks."""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```\s*$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """One fenced block: its language, its text without the indentation, its first line's number."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str:
        """The file that a first-line comment names (`# jobs.py`), or an empty string."""
        match = re.match(r"# ([\w./-]+\.\w+)\s*\n", self.text)
        return match[1] if match else ""


@dataclass
class Command:
    """One `$ ` line of a console block, and what the block shows as its output."""

    words: str
    line: int
    output: list[str] = field(default_factory=list)


def blocks(path: Path) -> list[Block]:
    """Return the fenced blocks of a file, in order."""
    text = path.read_text("utf-8")
    return [
        Block(match[2], textwrap.dedent(match[3]), text.count("\n", 0, match.start(3)) + 1)
        for match in _FENCE.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block; a line that ends with a backslash goes on in the next."""
    found: list[Command] = []
    goes_on = False
    for number, line in enumerate(block.text.splitlines(), block.line):
        if goes_on:
            found[-1].words += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(line[2:], number))
        elif line.strip() and found:
            found[-1].output.append(line.strip())
        goes_on = line.endswith("\\") and bool(found) and (goes_on or line.startswith("$ "))
    return found


def write_files(path: Path, folder: Path) -> list[str]:
    """Write the files that the blocks of a document name; return their names."""
    named = [block for block in blocks(path) if block.file]
    for block in named:
        (folder / block.file).write_text(block.text, "utf-8")
    return [block.file for block in named]
