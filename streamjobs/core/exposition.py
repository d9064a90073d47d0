"""Metrics as text, in the format that Prometheus reads (0.0.4). Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "_other"
"""Stands for every queue and every kind that is not known: what others name must not become labels without end."""

_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+(?: \S+)?)")


class Family(msgspec.Struct, frozen=True):
    """One metric: its samples, each with its labels."""

    name: str
    type: str
    """gauge or counter."""
    help: str
    samples: Sequence[tuple[dict[str, str], float]]


def exposition(families: Iterable[Family]) -> str:
    """Return the text of some metrics; one without samples is told of all the same."""
    lines: list[str] = []
    for one in families:
        lines += [f"# HELP {one.name} {_escaped(one.help)}", f"# TYPE {one.name} {one.type}"]
        lines += [f"{one.name}{_labels(labels)} {_number(value)}" for labels, value in one.samples]
    return "".join(f"{line}\n" for line in lines)


def joined(texts: Mapping[str, str], label: str) -> str:
    """Return several such texts as one: each sample gets a label that says whose it is, its key in `texts`.

    What a metric is, is said once, and its samples stand together, as the format asks for.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for key, text in texts.items():
        own = f'{label}="{_escaped(key, quote=True)}"'
        family = ""
        for line in text.splitlines():
            if line.startswith(("# HELP ", "# TYPE ")):
                family = line.split(" ", 3)[2]
                said = heads.setdefault(family, [])
                if not any(one.startswith(line[:7]) for one in said):
                    said.append(line)
            elif match := _SAMPLE.fullmatch(line):
                name, labels, value = match.groups()
                samples.setdefault(family, []).append(f"{name}{{{own}{f',{labels}' if labels else ''}}} {value}")
    lines = [line for family, said in heads.items() for line in [*said, *samples.get(family, [])]]
    return "".join(f"{line}\n" for line in lines)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{name}="{_escaped(value, quote=True)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text
