"""Who takes the payments: an HTTP server that can be overloaded. It then answers late, and with 503."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LATE_S = 0.4


class Downstream(ThreadingHTTPServer):
    """Listens on a free port of this machine.

    Attributes:
        overloaded: set it to let it fail.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.overloaded = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Downstream)
        failing = self.server.overloaded.is_set()
        if failing:
            time.sleep(LATE_S)
        self.send_response(503 if failing else 204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the jobs' errors do."""


@contextmanager
def downstream() -> Iterator[Downstream]:
    """Serve while the block runs."""
    with Downstream() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
