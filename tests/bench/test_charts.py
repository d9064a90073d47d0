"""Charts are well-formed, one for each scenario, with every bar in its frame."""

from pathlib import Path
from xml.etree import ElementTree

import msgspec

from benchmarks import charts
from benchmarks.document import Result
from benchmarks.measure import Spread
from tests.bench.test_document import RESULT, SOAK, finished

FIGURES = Result(
    scenario="some & more",
    variant="a<b",
    jobs=0,
    repeats=2,
    figures={"bytes a job": Spread(-1.0, -2.0, 3.0), "ms": Spread(0.0, 0.0, 0.0)},
)
SVG = "{http://www.w3.org/2000/svg}"


def test_there_is_a_chart_for_each_scenario_that_stands(tmp_path: Path) -> None:
    void = Result(scenario="drain", variant="x", jobs=1, repeats=1, void="left: 3")

    written = charts.write(
        finished(RESULT, msgspec.structs.replace(RESULT, variant="two"), FIGURES, void, SOAK), tmp_path
    )

    assert [path.name for path in written] == ["enqueue.svg", "some & more.svg"]
    root = ElementTree.fromstring(written[0].read_text("utf-8"))
    said = [text.text for text in root.iter(f"{SVG}text")]
    assert said[:2] == ["enqueue", "jobs/s"]
    assert said.count("bare loop") == 2
    assert {"many_sync", "two", "1,234,567", "1,530,000"} <= set(said)
    assert "commit 0123456789ab" in str(said[-1])


def test_every_bar_is_in_its_frame(tmp_path: Path) -> None:
    for path in charts.write(finished(RESULT, FIGURES), tmp_path):
        root = ElementTree.fromstring(path.read_text("utf-8"))
        for bar in list(root.iter(f"{SVG}rect"))[1:]:
            assert float(bar.attrib["width"]) >= 0
            assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= charts.WIDTH - charts.VALUE
            assert float(bar.attrib["y"]) + charts.BAR <= float(root.attrib["height"])


def test_figures_have_a_panel_each_and_bare_loops_stand_beside_ours() -> None:
    beside = msgspec.structs.replace(RESULT, figures={"of the most": Spread(0.5, 0.5, 0.5)})

    found = charts.panels([beside, FIGURES])

    assert [(name, [bar[0] for bar in bars]) for name, bars in found] == [
        ("jobs/s", ["many_sync", "bare loop"]),
        ("of the most", ["many_sync"]),
        ("bytes a job", ["a<b"]),
        ("ms", ["a<b"]),
    ]
