"""The ways on which the processes of a soak reach their server: a proxy each, which can be cut."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote

from streamjobs.client.target import parse_url
from tests.faults.proxy import Act, Proxy, Rule

from .plan import WAYS, Way

DROPPED_EVERY = 5


class Ways:
    """All of them, open for as long as this context is."""

    def __init__(self, url: str) -> None:
        self._arguments = parse_url(url).arguments
        self._proxies = {way: Proxy(_place(self._arguments)) for way in WAYS}
        self._stack = ExitStack()

    def __enter__(self) -> "Ways":
        for proxy in self._proxies.values():
            self._stack.enter_context(proxy)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def url(self, way: Way) -> str:
        """Return the address of the server on this way, with its login and its database."""
        names = [quote(str(self._arguments.get(name) or ""), safe="") for name in ("username", "password")]
        login = f"{':'.join(names)}@" if any(names) else ""
        place = self._proxies[way].url.removeprefix("redis://").partition("/")[0]
        return f"redis://{login}{place}/{self._arguments.get('db', 0)}"

    @contextmanager
    def cut(self, way: Way, how: str) -> Iterator[None]:
        """Cut one way, as `plan.CUTS` says; it is whole again at the end, but for connections that are dead."""
        proxy = self._proxies[way]
        try:
            match how:
                case "reset":
                    proxy.cut()
                case "away":
                    proxy.go_away()
                    proxy.cut()
                case "hold":
                    proxy.hold()
                case "drop":
                    proxy.add(Rule(Act.DROP, every=DROPPED_EVERY))
                case "hole":
                    proxy.add(Rule(Act.HOLE, times=1))
            yield
        finally:
            proxy.heal()

    def heal(self) -> None:
        """Make all of them whole."""
        for proxy in self._proxies.values():
            proxy.heal()


def _place(arguments: Mapping[str, Any]) -> str:
    if "path" in arguments:
        return f"unix://{arguments['path']}"
    host = arguments["host"]
    return f"redis://{f'[{host}]' if ':' in host else host}:{arguments['port']}"
