"""docs/observability.md and deploy/ are true: each metric, label, option and page in them is there in a real scrape."""

import asyncio
import configparser
import json
import logging
import re
import runpy
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import prometheus_client
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from streamjobs import Cancel, Fixed, JsonFormatter, Permanent, Retry
from streamjobs.cli.main import cli
from streamjobs.cli.params import seconds
from streamjobs.client import Connections
from streamjobs.operate.exporter import Exporter
from streamjobs.protocol.keys import DEFAULT_NAMESPACE, GROUP, QueueKeys
from tests.docs.blocks import blocks
from tests.servers import Server, find_servers
from tests.worker.support import FAST, make_app
from tests.worker.test_metrics import counted
from tests.worker.visits import Port

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "observability.md"
DEPLOY = ROOT / "deploy"
FILES = sorted(DEPLOY.iterdir())

ELSEWHERE = {"instance", "child", "le"}
"""Labels that Prometheus adds, and a supervisor, and those of histograms."""

Scraped = dict[str, dict[str, set[str]]]
"""By metric, the labels that it has, and the values of each."""


def labels_of(text: str) -> Scraped:
    found: Scraped = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for name, value in sample.labels.items():
                labels.setdefault(name, set()).add(value)
    return {name: labels for name, labels in found.items() if name.startswith("streamjobs_")}


@pytest.fixture(scope="module")
def scraped() -> Scraped:
    """What a worker and an exporter say on a server that was away for a moment."""
    binaries = find_servers()
    if not binaries:
        pytest.skip("no server binary at hand")
    return asyncio.run(_scrape(next(iter(binaries.values()))))


async def _scrape(binary: Path) -> Scraped:
    port, other = Port(), Port()
    with Server(binary) as server:
        app = make_app(server.url, "ns")
        scraping = asyncio.Event()
        errors = {"fails": ValueError("no"), "refuses": Permanent("no"), "cancels": Cancel("no")}

        @app.job(name="ends", retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
        async def ends(how: str = "") -> None:
            if how == "waits":
                await scraping.wait()
            elif how:
                raise errors[how]

        async with app.worker(["q"], FAST, metrics_port=port.address):
            server.kill9()
            await counted(port, "redis_errors_total", "CONNECT")
            server.start()
            await app.enqueue_many(ends.call(how) for how in ("", "waits", *errors))
            for outcome, times in (("done", 1), ("retried", 1), ("dead", 2), ("cancelled", 1)):
                await counted(port, "jobs_finished_total", "q", "ends", outcome, least=times)
            _, by_worker = await port.get("/metrics")
            connections = Connections(server.url)
            async with Exporter(connections, "ns").serving(other.address):
                _, by_exporter = await other.get("/metrics")
            await connections.aclose()
            scraping.set()
        await app.aclose()
    return labels_of(by_worker) | labels_of(by_exporter)


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each query of the files, with where it stands."""
    for panel in json.loads((DEPLOY / "grafana.json").read_text("utf-8"))["panels"]:
        yield from ((f"grafana: {panel['title']}", one["expr"]) for one in panel.get("targets", []))
    for group in documents("alerts.yaml")[0]["groups"]:
        yield from ((f"alerts: {rule['alert']}", rule["expr"]) for rule in group["rules"])
    for trigger in documents("keda-metrics.yaml")[0]["spec"]["triggers"]:
        yield "keda", trigger["metadata"]["query"]


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text("utf-8")))


@pytest.mark.parametrize(("where", "expr"), list(expressions()), ids=lambda text: text[:40])
def test_each_query_asks_for_what_is_there(where: str, expr: str, scraped: Scraped) -> None:
    used = re.findall(r"(streamjobs_\w+)(?:\{([^}]*)\})?", expr)
    assert used, where
    for name, matchers in used:
        assert name in scraped, f"{where}: no scrape has {name}"
        for label, values in re.findall(r'(\w+)=~?"([^"]*)"', matchers):
            assert label in scraped[name], f"{where}: {name} has no label {label}"
            if label in ("state", "move", "outcome"):
                assert set(values.split("|")) <= scraped[name][label], f"{where}: {label}={values}"
    grouped = {label for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expr) for label in labels.split(", ")}
    there = {label for name, _ in used for label in scraped[name]}
    assert grouped <= there | ELSEWHERE, where
    assert expr.count("(") == expr.count(")")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_metric_that_a_file_names_is_there(path: Path, scraped: Scraped) -> None:
    named = set(re.findall(r"streamjobs_\w+", path.read_text("utf-8")))

    assert named <= scraped.keys()


def test_the_tables_of_metrics_are_complete(scraped: Scraped) -> None:
    rows = re.findall(r"^\| `(streamjobs_\w+)` \|([^|]*)\|", DOCUMENT.read_text("utf-8"), re.MULTILINE)

    told = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    real: dict[str, set[str]] = {}
    for name, labels in scraped.items():
        base = re.sub(r"_(?:bucket|sum|count|created)$", "", name)
        real.setdefault(base, set()).update(labels.keys() - ELSEWHERE)
    assert told == real


def test_alerts_say_what_is_wrong_and_how_bad() -> None:
    rules = [rule for group in documents("alerts.yaml")[0]["groups"] for rule in group["rules"]]

    assert len({rule["alert"] for rule in rules}) == len(rules) > 10
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
        used = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        assert used <= set(re.findall(r"\w+", rule["expr"])) | {"queue", "instance"}


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    panels = json.loads((DEPLOY / "grafana.json").read_text("utf-8"))["panels"]

    places = [panel["gridPos"] for panel in panels]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each pod of the manifest, and its one container."""
    for document in documents("kubernetes.yaml"):
        pod = document["spec"]["template"]["spec"]
        [container] = pod["containers"]
        assert document["spec"]["selector"]["matchLabels"] == document["spec"]["template"]["metadata"]["labels"]
        yield pod, container


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the options of a command line, read by the program itself."""
    program, name, *rest = words
    assert program.rpartition("/")[2] == "streamjobs"
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command.make_context(name, rest, parent=click.Context(cli)).params


def test_the_manifest_runs_what_there_is_and_asks_where_it_answers() -> None:
    commands = set()
    for pod, container in containers():
        options = parsed(container["command"] + container["args"])
        commands.add(container["command"][1])
        ports = {one["name"]: one["containerPort"] for one in container["ports"]}
        for probe in (value for key, value in container.items() if key.endswith("Probe")):
            place = options.get("health_port") or options["port"]
            assert probe["httpGet"]["path"] in ("/livez", "/readyz")
            assert place == f":{ports[probe['httpGet']['port']]}"
        assert (options.get("metrics_port") or options["port"]) == f":{ports['metrics']}"
        if "grace" in options:
            assert pod["terminationGracePeriodSeconds"] > options["grace"] + 5
    assert commands == {"worker", "exporter"}


def test_keda_looks_at_a_stream_that_there_is() -> None:
    scaled, secret = documents("keda.yaml")
    [trigger] = scaled["spec"]["triggers"]
    [worker] = [parsed(one["command"] + one["args"]) for _, one in containers() if one["name"] == "worker"]

    assert trigger["metadata"]["stream"] == QueueKeys(DEFAULT_NAMESPACE, "web").stream
    assert "web" in worker["queues"][0]
    assert int(trigger["metadata"]["streamLength"]) == worker["concurrency"]
    assert trigger["authenticationRef"]["name"] == secret["metadata"]["name"]
    assert scaled["spec"]["minReplicaCount"] == 1
    assert GROUP not in trigger["metadata"].values()


def test_the_unit_runs_what_there_is_and_waits_for_its_end() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # pyright: ignore[reportAttributeAccessIssue]
    unit.read_string((DEPLOY / "streamjobs-worker.service").read_text("utf-8"))
    service = unit["Service"]

    options = parsed(shlex.split(service["ExecStart"]))

    assert options["processes"] == 4
    assert seconds(service["TimeoutStopSec"]) > options["grace"] + 5
    assert service["KillMode"] == "mixed"
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"].split() == ["2", "5", "130", "143"]


@contextmanager
def afterwards_as_before() -> Iterator[None]:
    """Let a program that sets up logging and metrics run as if it were alone."""
    root, registry = logging.getLogger(), prometheus_client.REGISTRY
    handlers, level, collectors = list(root.handlers), root.level, set(registry._collector_to_names)
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for collector in set(registry._collector_to_names) - collectors:
            registry.unregister(collector)


def test_the_blocks_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMJOBS_URL", "memory://")
    named = {block.file: block.text for block in blocks(DOCUMENT) if block.file}
    with afterwards_as_before():
        for name, text in named.items():
            (tmp_path / name).write_text(text, "utf-8")
            runpy.run_path(str(tmp_path / name))
        metrics = prometheus_client.generate_latest().decode()
        formatters = [type(one.formatter) for one in logging.getLogger().handlers]

    assert named.keys() == {"web.py", "own_logs.py"}
    assert "streamjobs_worker_slots 0.0" in metrics
    assert formatters == [JsonFormatter]
