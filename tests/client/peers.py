"""A server that misbehaves to order: it reads requests, and answers, cuts the line or keeps silent."""

import socket
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import hiredis


class Last(bytes):
    """Bytes to send before the connection is cut."""


OK = b"+OK\r\n"
CUT = Last()
SILENCE: None = None

Answer = bytes | None
"""Bytes to send; `SILENCE` leaves the connection open and never answers on it again."""


class Peer:
    """Listens on a loopback port. Each answer is for one request, over all connections, in order; when
    they are used up, every further request is answered by `OK`. `requests` has all that came in.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.requests: list[list[bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lines: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> "Peer":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for line in self._lines:
            # A line that the client has ended already cannot be shut down.
            try:
                line.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        talks: list[threading.Thread] = []
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                break
            self._lines.append(line)
            talks.append(threading.Thread(target=self._talk, args=(line,)))
            talks[-1].start()
        for talk in talks:
            talk.join()

    def _talk(self, line: socket.socket) -> None:
        reader = hiredis.Reader()
        silent = False
        with line:
            while received := _receive(line):
                reader.feed(received)
                while (request := reader.gets()) is not False:
                    self.requests.append(request)
                    answer = self._answers.pop(0) if self._answers else OK
                    silent = silent or answer is SILENCE
                    if answer is not None and not silent:
                        line.sendall(answer)
                    if isinstance(answer, Last):
                        return


def _receive(line: socket.socket) -> Any:
    try:
        return line.recv(65536)
    except OSError:
        return b""
