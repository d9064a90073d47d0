"""One table that says what an error means for the call that got it.

Three fates: the server did not do it and may later; nobody knows; it never will. Redis 6.2 wraps
errors raised inside scripts (`Error running script (...): ...: -OOM ...`), so a word counts
wherever it stands at the start or behind such a prefix.
Checked against the real replies of Redis 6.2, 7.0 and 8.2 and Valkey 9.1 by tests/client/test_replies.py.
"""

import re
from enum import Enum


class Fate(Enum):
    """What became of a call that was answered by an error, or not at all."""

    NOT_EXECUTED = "not executed"
    UNKNOWN = "unknown"
    PERMANENT = "permanent"


NOT_EXECUTED = frozenset(
    "LOADING READONLY MASTERDOWN NOREPLICAS BUSY OOM MISCONF TRYAGAIN CLUSTERDOWN MOVED ASK NOSCRIPT"
    " NOGROUP UNBLOCKED EXECABORT MAXCLIENTS KILLED CONNECT".split()
)
PERMANENT = frozenset(
    "NOAUTH WRONGPASS NOPERM BUSYGROUP CROSSSLOT WRONGTYPE UNKNOWN_COMMAND ARITY NOPROTO DENIED".split()
)

# Errors inside a script lose their word on some servers, and on others keep it behind a prefix.
_PROSE = {
    "max number of clients": "MAXCLIENTS",
    "unknown command": "UNKNOWN_COMMAND",
    "unknown redis command": "UNKNOWN_COMMAND",
    "wrong number of arg": "ARITY",
    "too few arguments": "ARITY",
    "invalid password": "WRONGPASS",
    "invalid username-password": "WRONGPASS",
    "without any password configured": "WRONGPASS",
    "acl failure in script": "NOPERM",
    "the user executing the script can't": "NOPERM",
    "command not allowed when used memory": "OOM",
    "is loading the dataset": "LOADING",
    "the stream key no longer exists": "UNBLOCKED",
    # What fakeredis answers to a read of a stream that is gone.
    "xgroup subcommand requires the key to exist": "NOGROUP",
    # Only a script that has written nothing can be killed.
    "script killed by user": "KILLED",
    "is not an integer or out of range": "SCRIPT",
}
_WORD = re.compile(r"(?:^|[\s:]-?)([A-Z][A-Z]{2,}[A-Z0-9]*)(?=\s|$|:)")


def word(text: str) -> str:
    """Return the word that names an error reply, or `ERR` when it has none that we know."""
    for match in _WORD.finditer(text):
        if match[1] in NOT_EXECUTED or match[1] in PERMANENT:
            return match[1]
    lowered = text.lower()
    return next((name for prose, name in _PROSE.items() if prose in lowered), "ERR")


def fate(name: str) -> Fate:
    """Return the fate of a call answered by an error of this word; what we do not know is permanent.

    A reply proves that the call has ended, so no *reply* is ever UNKNOWN: only a missing one is.
    """
    return Fate.NOT_EXECUTED if name in NOT_EXECUTED else Fate.PERMANENT
