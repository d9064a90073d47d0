"""What errors have in common: their text without what differs from job to job. Pure."""

import re
from functools import lru_cache

LONGEST = 200
"""Characters of an error that are looked at: those that differ only behind them are alike."""

_QUOTES = re.compile(r"""(?<!\w)(?:'[^'\n]*(?:'(?!\w)|\Z)|"[^"\n]*(?:"(?!\w)|\Z)|`[^`\n]*(?:`(?!\w)|\Z))""")
"""Quoted text, also such as was cut before its end."""
_CHANGING = re.compile(r"[\d/@\\]")
"""Words without any of these are the same for all."""
_PARTS = re.compile(
    r"""
      (?P<url>   \b [A-Za-z][A-Za-z0-9+.-]* :// [^'"<>)\]]+ )
    | (?P<email> \b [\w.+-]+ @ [\w-]+ (?: \. [\w-]+ )+ )
    | (?P<path>  (?<! [\w.<] ) (?: [A-Za-z]:\\ [^:'"]+ | ~? (?: / [\w.@+-]+ ){2,} /? ) )
    | (?P<time>  \b \d{4}-\d\d-\d\d (?: T\d\d:\d\d (?: :\d\d (?: \.\d+ )? )? (?: Z | [+-]\d\d:?\d\d )? )? \b )
    | (?P<id>    \b [0-9a-fA-F]{8} (?: - [0-9a-fA-F]{4} ){3} - [0-9a-fA-F]{12} \b
               | \b 0x [0-9a-fA-F]+ \b
               | (?<! [A-Za-z0-9] ) (?= [A-Za-z]* \d [A-Za-z]* \d ) (?= \d* [A-Za-z] ) [A-Za-z0-9]{8,} (?! [A-Za-z0-9] )
             )
    | (?P<number> (?<! [A-Za-z0-9] ) \d+ (?: [.,:] \d+ )* )
    """,
    re.VERBOSE,
)
_INSTEAD = {"url": "<url>", "email": "<email>", "path": "<path>", "time": "<time>", "id": "<id>", "number": "N"}


@lru_cache(maxsize=10_000)
def likeness(error: str) -> str:
    """Return an error's type and text with its changing parts replaced; the same for errors of one cause.

    Quoted text becomes `'…'`; URLs, e-mail addresses, absolute paths, dates and times become `<url>`, `<email>`,
    `<path>`, `<time>`; UUIDs, `0x…` and words of 8 or more letters and digits with two digits among them
    `<id>`; other numbers `N`. White space counts as one space.
    """
    words = _QUOTES.sub("'…'", error[:LONGEST]).split()
    return " ".join([_PARTS.sub(_instead, word) if _CHANGING.search(word) else word for word in words])


def _instead(part: re.Match[str]) -> str:
    return _INSTEAD[part.lastgroup or ""]
