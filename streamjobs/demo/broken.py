"""Three broken files of the demo's own, and the repair of one of them.

Some installations of Python hold no file that does not parse, and nobody may repair those that
others hold: so these are always added to the files of the standard library.
"""

from pathlib import Path

UNFINISHED = "unfinished.py"
_TEXTS = {
    UNFINISHED: b'def mended_by_hand(:\n    """Written in a hurry."""\n',
    "latin1.py": 'def caf\u00e9():\n    """Saved in another encoding."""\n'.encode("latin-1"),
    "torn.py": b"def torn():\n    return 1\n\0\0\0\0\0\0\0\0",
}


def write(folder: Path) -> list[Path]:
    """Write the three files into `folder`, which is made if need be; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _TEXTS.items():
        (folder / name).write_bytes(text)
    return [folder / name for name in _TEXTS]


def repair(folder: Path) -> Path:
    """Make the unfinished file one that compiles, as its author would; return its path."""
    path = folder / UNFINISHED
    path.write_bytes(_TEXTS[UNFINISHED].replace(b"(:", b"():"))
    return path
