"""Every JSON document fits the schema that is published for it."""

import json
from typing import Any

import pytest

from streamjobs.protocol.workers import Running
from tests.cli.schema import FOLDER, load, problems
from tests.cli.support import APP, Line
from tests.cli.test_cron import HOURLY, NIGHTLY, Workers
from tests.cli.test_workers import Crew


def documents(line: Line) -> list[dict[str, Any]]:
    """Let everything happen once, and return every document on the way."""
    found = [line.stats(), line.json("doctor"), line.json("dead", "list"), line.json("dead", "groups")]
    found.append(line.json("enqueue", "-A", APP, "add", "1", "--dedupe-key", "k"))
    found.append(line.json("enqueue", "-A", APP, "add", "1", "--dedupe-key", "k"))
    found.append(line.json("enqueue", "-A", APP, "tests.greet", "Ada", "--count", "3"))
    found.append(line.json("enqueue", "-A", APP, "tests.greet", "Ada", "--delay", "1h"))
    later = found[-1]["jobs"][0]["id"]
    found += [line.json("job", "show", later), line.json("job", "list")]
    found.append(line.json("job", "reschedule", later, "--delay", "2h"))
    found.append(line.json("job", "cancel", later))
    dead = line.enqueue("tests.fail", "x", "--dedupe-key", "d")
    found.append(line.json("job", "show", dead))
    line.work()
    line.enqueue("tests.fail", "y", "--dedupe-key", "d")
    found += [line.stats(), line.json("queue", "list"), line.json("lua", "list"), line.json("bench", "list")]
    found.append(line.json("queue", "limit", "math", "--rate", "5/m", "--concurrency", "off"))
    found += [line.json("job", "show", dead), line.json("dead", "show", dead)]
    found += [line.json("dead", "list"), line.json("dead", "groups")]
    found.append(line.json("dead", "replay", "--dry-run"))
    found.append(line.json("dead", "replay", "--yes", exit=5))
    exported = line("dead", "export").stdout
    found += [json.loads(text) for text in exported.splitlines()]
    found.append(line.json("dead", "import", "-", stdin=exported))
    found.append(line.json("dead", "purge", "--dry-run"))
    found.append(line.json("dead", "purge", "--yes"))
    found.append(line.json("job", "show", dead))
    found += [line.json("queue", "pause", "math"), line.json("queue", "resume", "math")]
    found += [*cron_documents(line), line.json("queue", "show", "math"), *worker_documents(line)]
    return [*found, line.json("queue", "purge", "math", "--yes"), line.json("queue", "delete", "math", "--dry-run")]


def cron_documents(line: Line) -> list[dict[str, Any]]:
    """Let a worker schedule crons, and return every document of theirs."""
    workers = Workers(line)
    workers.start("a", NIGHTLY, HOURLY)
    workers.start("b", NIGHTLY)
    workers.stop("a")
    found = [line.json("cron", *words) for words in (["list"], ["list", "--all"], ["next", "nightly"])]
    found += [line.json("cron", word, "nightly") for word in ("run", "pause", "resume")]
    workers.close()
    return found


def worker_documents(line: Line) -> list[dict[str, Any]]:
    """Let a worker tell of itself, and return every document of it; one that takes an order is tested elsewhere."""
    crew = Crew(line)
    crew.meet("a", jobs=(Running("web:1-0", "mail", 5),))
    found = [line.json("workers", *words) for words in (["list"], ["show", "a"], ["prune"])]
    found.append(line.stats("--by", "worker"))
    crew.close()
    return found


def test_documents_fit_their_schemas(line: Line) -> None:
    seen = set()
    for document in documents(line):
        seen.add(document["schema"])
        assert list(document)[:2] == ["schema", "version"]
        assert problems(document, load(document["schema"])) == [], document

    # What `enqueue --wait` and orders print is checked where a worker runs beside it, and benchmarks' by their tests.
    assert {path.stem for path in FOLDER.glob("*.json")} - {name.removeprefix("streamjobs.") for name in seen} == {
        "result", "workers.order", "bench", "bench.compare", "bench.peers",
    }  # fmt: skip


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_schemas_name_their_document(path: Any) -> None:
    schema = json.loads(path.read_text("utf-8"))

    assert schema["title"] == f"streamjobs.{path.stem}"
    assert schema["properties"]["schema"] == {"const": schema["title"]}
    assert schema["properties"]["version"] == {"const": 1}
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"schema": "streamjobs.other", "version": 1, "namespace": "x", "queues": []},
        {"schema": "streamjobs.queue.list", "version": 1, "namespace": "x", "queues": [1]},
        {"schema": "streamjobs.queue.list", "version": 1, "namespace": None, "queues": []},
        {"schema": "streamjobs.queue.list", "version": 1, "namespace": "x", "queues": [], "more": 1},
    ],
)
def test_the_checker_finds_faults(value: Any) -> None:
    assert problems(value, load("streamjobs.queue.list")) != []
