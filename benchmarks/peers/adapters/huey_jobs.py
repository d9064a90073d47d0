"""Huey; fast keeps no results and has four threads."""

import huey

from .base import FAST, TEXT, URL, Clock, main, mark

app = huey.RedisHuey("jobs", url=URL, **({"results": False} if FAST else {}))


def run(number: int, text: str) -> None:
    mark()


noop = app.task(name="noop")(run)


def one(jobs: int) -> None:
    app.storage.conn.ping()
    with Clock(jobs):
        for number in range(jobs):
            noop(number, TEXT)


def drain() -> None:
    app.create_consumer(workers=4 if FAST else 1).run()


if __name__ == "__main__":
    main(one=one, drain=drain)
