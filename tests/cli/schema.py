"""A checker for the JSON Schema files of this project: the few keywords that they use, and no others."""

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schemas"

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_NOTES = {"$schema", "title", "description"}
_KNOWN = _NOTES | set("type properties required additionalProperties items const enum minimum pattern".split())


def load(name: str) -> dict[str, Any]:
    """Return the schema of a document, named as its `schema` field names it."""
    schema: dict[str, Any] = json.loads((FOLDER / f"{name.removeprefix('streamjobs.')}.json").read_text("utf-8"))
    return schema


def problems(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """Return what is wrong with a value; nothing when it fits."""
    assert schema.keys() <= _KNOWN, f"{where}: keywords not known here: {schema.keys() - _KNOWN}"
    if "const" in schema and value != schema["const"]:
        return [f"{where}: {value!r} is not {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    names = schema.get("type", list(_TYPES))
    if not any(_is(value, name) for name in ([names] if isinstance(names, str) else names)):
        return [f"{where}: {value!r} is not of type {names}"]
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return [f"{where}: {value!r} does not match {schema['pattern']}"]
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        return [f"{where}: {value!r} is below {schema['minimum']}"]
    if isinstance(value, list):
        inner = schema.get("items", {})
        return [p for i, one in enumerate(value) for p in problems(one, inner, f"{where}[{i}]")]
    return _object(value, schema, where) if isinstance(value, dict) else []


def _object(value: dict[str, Any], schema: dict[str, Any], where: str) -> list[str]:
    known = schema.get("properties", {})
    rest = schema.get("additionalProperties", {})
    found = [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
    for name, one in value.items():
        inner = known.get(name, rest)
        if inner is False:
            found.append(f"{where}: {name} is not described")
        else:
            found += problems(one, inner, f"{where}.{name}")
    return found


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
