"""The text that monitors read, as the parser of Prometheus's own client reads it."""

from prometheus_client.parser import text_string_to_metric_families

from streamjobs.core.exposition import Family, exposition, joined

HOSTILE = 'a"b\\c\nd{e}=,é'
JOBS = Family("jobs", "gauge", "Jobs: \\ and\nnew lines.", [({"queue": HOSTILE, "state": "dead"}, 3), ({}, 0.25)])
MOVES = Family("moves_total", "counter", "Moves.", [({"queue": "q"}, 2**53)])


def parsed(text: str) -> dict[str, tuple[str, str, list[tuple[str, dict[str, str], float]]]]:
    """Return the metrics of a text by name: type, help, samples."""
    return {
        one.name: (one.type, one.documentation, [(sample.name, sample.labels, sample.value) for sample in one.samples])
        for one in text_string_to_metric_families(text)
    }


def test_what_is_written_is_what_is_read() -> None:
    text = exposition([JOBS, MOVES, Family("none", "gauge", "No sample.", [])])

    assert parsed(text) == {
        "jobs": ("gauge", JOBS.help, [("jobs", {"queue": HOSTILE, "state": "dead"}, 3), ("jobs", {}, 0.25)]),
        "moves": ("counter", "Moves.", [("moves_total", {"queue": "q"}, 2**53)]),
        "none": ("gauge", "No sample.", []),
    }
    assert "jobs 0.25\n" in text
    assert f"{2**53}\n" in text


def test_several_texts_become_one_whose_samples_say_whose_they_are() -> None:
    texts = {"0": exposition([JOBS, MOVES]), "1": exposition([MOVES, Family("more", "gauge", "More.", [({}, 1)])])}

    text = joined(texts, "child")

    assert parsed(text) == {
        "jobs": (
            "gauge", JOBS.help,
            [("jobs", {"child": "0", "queue": HOSTILE, "state": "dead"}, 3), ("jobs", {"child": "0"}, 0.25)],
        ),
        "moves": (
            "counter", "Moves.",
            [("moves_total", {"child": one, "queue": "q"}, 2**53) for one in ("0", "1")],
        ),
        "more": ("gauge", "More.", [("more", {"child": "1"}, 1)]),
    }  # fmt: skip
    assert text.count("# TYPE moves_total") == text.count("# HELP moves_total") == 1


def test_histograms_are_joined_whole() -> None:
    text = '# HELP t T.\n# TYPE t histogram\nt_bucket{le="+Inf"} 2.0\nt_count 2.0\nt_sum 1e-05\n'

    assert joined({"0": text, "1": text}, "child").splitlines() == [
        "# HELP t T.", "# TYPE t histogram",
        't_bucket{child="0",le="+Inf"} 2.0', 't_count{child="0"} 2.0', 't_sum{child="0"} 1e-05',
        't_bucket{child="1",le="+Inf"} 2.0', 't_count{child="1"} 2.0', 't_sum{child="1"} 1e-05',
    ]  # fmt: skip


def test_nothing_joined_is_nothing() -> None:
    assert joined({}, "child") == joined({"0": ""}, "child") == ""
