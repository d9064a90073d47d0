"""An app for the tests of the command line."""

from streamjobs import Permanent, Retry, StreamJobs, UntilDone

app = StreamJobs("memory://cli-tests")


@app.job(name="tests.greet")
async def greet(name: str, *, times: int = 1) -> str:
    """Return a greeting."""
    return " ".join([f"hello {name}"] * times)


@app.job(name="tests.add", queue="math")
async def add(a: int, b: int = 0, tags: list[str] | None = None) -> int:
    """Return a sum."""
    return a + b


@app.job(name="tests.fail", retry=Retry(max_attempts=1))
async def fail(text: str = "no") -> None:
    """Die."""
    raise ValueError(text)


@app.job(name="tests.refuse", queue="math")
async def refuse(n: int = 0) -> None:
    """Die at once."""
    raise Permanent(f"refused {n}")


@app.job(name="tests.once", dedupe=UntilDone(key="a"))
async def once(a: int) -> None:
    """Be there once for each argument."""


@app.job(name="other.greet")
async def other_greet(name: str) -> str:
    """Share the last part of another kind's name."""
    return name


not_an_app = "text"
