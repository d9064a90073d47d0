"""Find the user's app."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from streamjobs.core.errors import InvalidOption

if TYPE_CHECKING:
    from streamjobs.app import StreamJobs


def load_app(path: str) -> "StreamJobs":
    """Import `module:attribute`; modules in the current folder are found as `python -m` finds them.

    Raises:
        InvalidOption: no such module or attribute, the module cannot be imported, or it is no app.
    """
    from streamjobs.app import StreamJobs

    name, colon, attribute = path.partition(":")
    if not (name and colon and attribute):
        raise InvalidOption(f"app {path!r:.80}: expected MODULE:ATTRIBUTE, such as jobs:app")
    found: object = _import(name, path)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InvalidOption(f"app {path!r:.80}: {name} has no attribute {attribute!r}{_hint(name)}")
        found = getattr(found, part)
    if not isinstance(found, StreamJobs):
        raise InvalidOption(f"app {path!r:.80}: this is a {type(found).__name__}, not a StreamJobs{_hint(name)}")
    return found


def _import(name: str, path: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise InvalidOption(f"app {path!r:.80}: there is no module {error.name!r} in {here}") from error
        raise InvalidOption(f"app {path!r:.80}: importing {name} failed: {error}") from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InvalidOption(f"app {path!r:.80}: importing {name} failed: {reason}") from error


def _hint(name: str) -> str:
    """Name the apps that are there."""
    from streamjobs.app import StreamJobs

    apps = [key for key, value in vars(sys.modules[name]).items() if isinstance(value, StreamJobs)]
    return f"; did you mean {name}:{apps[0]}?" if apps else ""
