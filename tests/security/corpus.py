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
    "failures in 4300 digits": b'{"f":' + b"9" * 4300 + b"}",
    "parks below 0": b'{"p":-1}',
    "parks beyond": b'{"p":9223372036854775807}',
    "waits below 0": b'{"r":-9223372036854775808}',
    "waits beyond": b'{"r":1' + b"0" * 400 + b"}",
    "snoozes below 0": b'{"s":-1}',
    "snoozes in 4300 digits": b'{"s":' + b"9" * 4300 + b"}",
    "crashes below 0": b'{"c":-5}',
    "crashes of its own below 0": b'{"pc":-5}',
    "generation below 0": b'{"g":-1}',
    "generation in 4300 digits": b'{"g":' + b"9" * 4300 + b"}",
    "counts at their end": b'{"g":%(n)d,"s":%(n)d,"r":%(n)d}' % {b"n": 2**53},
    "an id of another": b'{"id":"9999999999999-0"}',
    "an id that is none": b'{"id":"../../etc/passwd"}',
    "an id that is no time": b'{"id":"abc","e":1000}',
    "an id with a line": b'{"id":"1-1\\n","e":1000}',
    "an id in other digits": '{"id":"\u0663-\u0663","e":1000}'.encode(),
    "the last id": b'{"id":"18446744073709551615-18446744073709551615","e":1000}',
    "the first id": b'{"id":"d0-0","e":1}',
    "steering id": json.dumps({"id": STEERING}).encode(),
    "expired long ago": b'{"ea":1}',
    "expires never": b'{"ea":99999999999999999999}',
    "expires before all": b'{"ea":-1}',
    "expires at the last": b'{"ea":9223372036854775807}',
    "expires in less than nothing": b'{"e":-1}',
    "expires in ages": b'{"e":9223372036854775807}',
    "headers as list": b'{"h":[1]}',
    "steering headers": json.dumps({"h": {STEERING: STEERING}}).encode(),
    "history that is none": b'{"x":[{"at":"now"}]}',
    "history before all": b'{"x":[{"at":-1,"n":-1}]}',
    "history beyond": b'{"x":[{"at":9223372036854775807,"n":9223372036854775807}]}',
    "long history": json.dumps({"x": [{"at": 1, "n": 1, "e": "x" * 100}] * 1000}).encode(),
    "steering history": json.dumps({"x": [{"e": STEERING, "k": STEERING, "w": STEERING}]}).encode(),
    "dedupe key": json.dumps({"dk": STEERING, "dm": "s"}).encode(),
    "mode that is none": b'{"dk":"k","dm":"?","dw":-5}',
    "a window beyond": b'{"dk":"k","dw":9223372036854775807}',
    "a window in 4300 digits": b'{"dk":"k","dw":' + b"9" * 4300 + b"}",
    "a key of 1 MB": json.dumps({"dk": "k" * 1_000_000}).encode(),
    "result for ever": b'{"rt":99999999999999}',
    "result beyond": b'{"rt":9223372036854775807}',
    "result for less than nothing": b'{"rt":-1}',
    "no traceparent": b'{"tp":"00-"}',
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
