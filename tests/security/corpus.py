"""Input that nobody means well with: bodies, metas, kinds, names and words of command lines."""

import json
import pickle
import zlib
from typing import Any

from streamjobs.core.names import MAX_PAYLOAD_BYTES

DEEP = 100_000
STEERING = "\x1b[2J\x1b]0;title\x07\r\n\x00\x9b31m\u202e\u2066\u200f\ufeff\x7f"
"""What could steer a terminal, or forge a line of a log."""
MARKUP = "<script>alert(1)</script>\"'&#x3c;${jndi:ldap://x}{0.__class__}%s%n{{7*7}}`id`$(id)"


def _padded(size: int) -> bytes:
    return b'{"value":"' + b"x" * (size - 12) + b'"}'


BODIES: dict[str, bytes] = {
    "deep lists": b"[" * DEEP,
    "deep objects": b'{"a":' * DEEP,
    "deep lists in an argument": b'{"value":' + b"[" * 1500 + b"]" * 1500 + b"}",
    "5000 digits": b'{"value":' + b"9" * 5000 + b"}",
    "4300 digits": b'{"value":' + b"9" * 4300 + b"}",
    "1e400": b'{"value":1e400}',
    "NaN": b'{"value":NaN}',
    "Infinity": b'{"value":-Infinity}',
    "a name twice": b'{"value":1,"value":2}',
    "lone surrogate": b'{"value":"\\ud800"}',
    "byte order mark": b'\xef\xbb\xbf{"value":1}',
    "UTF-16": '{"value":1}'.encode("utf-16"),
    "invalid UTF-8": b'{"value":"\xff\xfe\xc3"}',
    "overlong UTF-8": b'{"value":"\xc0\xaf"}',
    "empty": b"",
    "spaces": b" \n\t ",
    "null": b"null",
    "a number": b"1",
    "a list": b"[1]",
    "a text": b'"value"',
    "trailing bytes": b'{"value":1}{"value":2}',
    "truncated": b'{"value":"x',
    "NUL": b'{"value":"a\\u0000b"}',
    "raw NUL": b'{"value":"a\x00b"}',
    "names of Python": b'{"__class__":"os","__init__":1,"value":1}',
    "names of JavaScript": b'{"__proto__":{"x":1},"constructor":1}',
    "long name": b'{"' + b"n" * 200_000 + b'":1}',
    "many names": json.dumps({f"n{i}": i for i in range(15_000)}).encode(),
    "2^53+1": b'{"value":9007199254740993}',
    "2^64": b'{"value":18446744073709551616}',
    "-0": b'{"value":-0.0}',
    "1.0": b'{"value":1.0}',
    "pickle": pickle.dumps({"value": 1}),
    "msgpack": b"\x81\xa5value\x01",
    "msgpack of 4 G": b"\xdd\xff\xff\xff\xff",
    "a bomb": zlib.compress(b'{"value":"' + b"x" * 10_000_000 + b'"}'),
    "at the limit": _padded(MAX_PAYLOAD_BYTES),
    "over the limit": _padded(MAX_PAYLOAD_BYTES + 1),
    "far over the limit": _padded(4 * MAX_PAYLOAD_BYTES),
    "steering": json.dumps({"value": STEERING}).encode(),
    "raw steering": STEERING.encode(),
    "markup": json.dumps({"value": MARKUP}).encode(),
}

METAS: dict[str, bytes] = {
    "version 999": b'{"v":999}',
    "version as text": b'{"v":"1"}',
    "no JSON": b"meta",
    "a list": b"[]",
    "deep": b'{"x":' + b"[" * DEEP,
    "failures below 0": b'{"f":-1}',
    "failures beyond": b'{"f":1000000000000000000}',
    "failures as text": b'{"f":"3"}',
    "failures in other digits": '{"f":"٣"}'.encode(),
    "more digits than an int has": b'{"f":' + b"9" * 5000 + b"}",
    "an id of another": b'{"id":"9999999999999-0"}',
    "an id that is none": b'{"id":"../../etc/passwd"}',
    "steering id": json.dumps({"id": STEERING}).encode(),
    "expired long ago": b'{"ea":1}',
    "expires never": b'{"ea":99999999999999999999}',
    "headers as list": b'{"h":[1]}',
    "steering headers": json.dumps({"h": {STEERING: STEERING}}).encode(),
    "history that is none": b'{"x":[{"at":"now"}]}',
    "steering history": json.dumps({"x": [{"e": STEERING, "k": STEERING, "w": STEERING}]}).encode(),
    "dedupe key": json.dumps({"dk": STEERING, "dm": "s"}).encode(),
    "mode that is none": b'{"dk":"k","dm":"?","dw":-5}',
    "result for ever": b'{"rt":99999999999999}',
    "members of the future": b'{"zz":{"a":1}}',
    "binary": b"\x80\x04\x95\xff",
}

KINDS = [
    "os.system",
    "builtins.eval",
    "../../etc/passwd",
    "a/b%2e%2e",
    "x\nERROR forged",
    STEERING,
    MARKUP,
    "k" * 10_000,
    "größe.発送",
    "-rf",
    " ",
    "\u202egnp.exe",
]

FIELDS: dict[str, list[bytes]] = {
    "no envelope": [b"note", b"hello"],
    "empty names": [b"", b""],
    "binary names": [b"\xff\x00", b"\x80", b"kind", b"echo"],
    "a field twice": [b"kind", b"echo", b"body", b"{}", b"kind", b"other"],
    "capitals": [b"KIND", b"echo", b"Body", b"{}"],
    "no body": [b"kind", b"echo"],
    "no kind": [b"body", b'{"value":1}'],
    "binary kind": [b"kind", b"\xff\xfe", b"body", b"{}"],
    "extra fields": [b"kind", b"echo", b"body", b'{"value":1}', *(b"f%d" % (i // 2) for i in range(200))],
}

NAMES = [
    "",
    "{}",
    "{a}{b}",
    "a}",
    "*",
    "x" * 65,
    "q" * 512,
    "größe",
    "a b",
    'a"b',
    "a'b",
    "a:b",
    "x:dead",
    "q\n",
    STEERING,
]
"""None of them can name a queue or a namespace."""

WORDS = [
    *("", "-", "--", "-x", "abc", "0-0", "+", "1-1;FLUSHALL", "q:1-1\r\nFLUSHALL", "%2e%2e/", "//evil"),
    *("-1", "0", "1e400", "nan", "99999999999999999999", "٣", "\ud800", "=", "a=b=c", "[" * 2000, "{" * 2000),
    *(MARKUP, STEERING, "x" * 1_000_000, "2030-01-31T12:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+00:00"),
]
"""For every option and argument of the command line."""

VALUES: dict[str, Any] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "lone surrogate": "\ud800",
    "a surrogate as a name": {"\ud800": 1},
    "names that are no texts": {1: 2},
    "bytes": b"\xff",
    "a set": {1},
    "an object": object(),
    "a function": print,
    "2^64": 2**64,
    "2^63": 2**63 - 1,
    "4201 digits": 10**4200,
    "5001 digits": 10**5000,
    "NUL": "a\x00b",
    "steering": STEERING,
    "markup": MARKUP,
    "over the limit": "x" * MAX_PAYLOAD_BYTES,
    "10 MB": "x" * 10_000_000,
    "many names": {f"n{i}": i for i in range(100_000)},
}


def _deep() -> Any:
    value: Any = []
    for _ in range(5000):
        value = [value]
    return value


VALUES["deep"] = _deep()
_endless: list[Any] = []
_endless.append(_endless)
VALUES["endless"] = _endless
