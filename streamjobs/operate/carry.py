"""Dead jobs as lines of text, and back: each row of the dead stream byte by byte.

A line is one JSON object: `schema` and `version`, `id` (the job's), `entry` (where its row was), and `row`, its fields
by name. A field is a string, or `{"base64": ...}` where its bytes are no UTF-8. `redacted` says that its arguments are
not all there.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping

import msgspec

from streamjobs.client.talk import Talk
from streamjobs.core.errors import InvalidOption, UsageError
from streamjobs.core.job import enqueued_ms
from streamjobs.core.names import split_job_id
from streamjobs.operate.batches import cut, keys_of
from streamjobs.operate.jobs import local_id
from streamjobs.protocol import intake, letters
from streamjobs.protocol.keys import QueueKeys

SCHEMA = "streamjobs.dead.row"
VERSION = 1
NEEDED = ("kind", "body", "meta", "reason", "error", "attempts", "history", "died_at")
"""What every row has that a worker wrote, beside `id`."""
MOST_FIELDS = 1000


class _Bytes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    base64: str


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line."""

    schema: str
    version: int
    id: str
    entry: str
    row: dict[str, str | _Bytes]
    redacted: bool = False


_decoder = msgspec.json.Decoder(Line)


def line(keys: QueueKeys, entry: str, fields: Mapping[str, bytes], *, redacted: bool = False) -> bytes | None:
    """Return a row as a line, without a line end; None for one that is not ours, since it names no job.

    `redacted`: its arguments were replaced by what may be shown of them; such a line cannot be imported.
    """
    local = local_id(fields)
    if not local:
        return None
    # A promise is no field of the row, but of what is found by an id.
    row = {_name(name): _value(value) for name, value in fields.items() if name not in ("id", "promise")}
    return msgspec.json.encode(Line(SCHEMA, VERSION, keys.job_id(local), entry, row, redacted))


def _name(name: str) -> str:
    raw = name.encode("utf-8", "surrogateescape")
    return name if _is_text(raw) else f"base64:{b64encode(raw).decode()}"


def _value(value: bytes) -> str | _Bytes:
    return value.decode() if _is_text(value) else _Bytes(b64encode(value).decode())


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


class Parsed(msgspec.Struct, frozen=True):
    """A line that was read."""

    tag: str
    """The queue, with its partition."""
    item: letters.Restore

    @property
    def id(self) -> str:
        return f"{self.tag}:{self.item.job}"


def parse(text: bytes, now_ms: int) -> Parsed:
    """Read a line.

    Raises:
        UsageError: it is none, or lacks something.
    """
    try:
        found = _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is no exported dead job: {error}") from error
    if (found.schema, found.version) != (SCHEMA, VERSION):
        raise UsageError(f"schema {found.schema!r:.40} {found.version}: expected {SCHEMA!r} {VERSION}")
    try:
        _, _, local = split_job_id(found.id)
    except InvalidOption as error:
        raise UsageError(str(error)) from error
    if enqueued_ms(local) > now_ms:
        # The server will give this id to another job one day.
        raise UsageError(f"job {found.id} was enqueued later than it is here: set the server's clock")
    if found.redacted:
        raise UsageError(f"job {found.id}: its arguments are hidden: export it with --reveal")
    if missing := [name for name in NEEDED if name not in found.row]:
        raise UsageError(f"job {found.id}: its row has no {missing[0]}")
    if len(found.row) > MOST_FIELDS or "id" in found.row:
        raise UsageError(f"job {found.id}: its row has {'an id' if 'id' in found.row else 'too many fields'}")
    try:
        fields = {_raw_name(name): _raw(value) for name, value in found.row.items()}
    except (NotBase64, ValueError) as error:
        raise UsageError(f"job {found.id}: a field of its row is no base64: {error}") from error
    return Parsed(found.id.partition(":")[0], letters.Restore(local, fields))


def _raw_name(name: str) -> bytes:
    return b64decode(name.removeprefix("base64:"), validate=True) if name.startswith("base64:") else name.encode()


def _raw(value: str | _Bytes) -> bytes:
    return value.encode() if isinstance(value, str) else b64decode(value.base64, validate=True)


class Restored(msgspec.Struct):
    """What came of an import."""

    done: int = 0
    dead: int = 0
    """Left alone, since they are dead here already."""
    alive: dict[str, None] = {}
    """Left alone, since they wait, run or are scheduled here."""


def restore(namespace: str, found: Iterable[Parsed], whole: Restored) -> Talk[None]:
    """Put exported jobs back among the dead, in bounded batches; what came of them is added to the whole.

    A job that is here in any form is left alone, so whatever is done again changes nothing.
    """
    known: set[str] = set()
    for tag, batch in cut(found, lambda one: (one.tag, one.item.size)):
        keys = keys_of(namespace, tag)
        if keys.queue not in known:
            yield [intake.announce(namespace, [keys.queue])]
            known.add(keys.queue)
        [words] = yield [letters.restore(keys, [one.item for one in batch])]
        whole.done += words.count("OK")
        whole.dead += words.count("DEAD")
        whole.alive |= {one.id: None for one, word in zip(batch, words, strict=True) if word == "LIVE"}
