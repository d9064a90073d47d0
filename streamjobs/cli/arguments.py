"""From words on a command line to a job's arguments."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from streamjobs.core.errors import UnknownKind, UsageError
from streamjobs.core.text import plural

if TYPE_CHECKING:
    from streamjobs.app import StreamJobs
    from streamjobs.core.codec import Signature
    from streamjobs.core.job import Job
    from streamjobs.core.options import EnqueueOptions
    from streamjobs.core.registry import Handler


class Given:
    """The arguments of one job as they were typed."""

    def __init__(self, words: Sequence[str], named: Sequence[str], as_json: str | None) -> None:
        """
        Args:
            words: by position.
            named: `name=value` each.
            as_json: a JSON object.

        Raises:
            UsageError: a named one has no `=`, a name comes twice, or the JSON is no object.
        """
        self.words = words
        self.texts: dict[str, str] = {}
        for text in named:
            name, equals, value = text.partition("=")
            if not (name and equals):
                raise UsageError(f"--arg {text!r:.80}: expected NAME=VALUE")
            self._check_new(name)
            self.texts[name] = value
        self.values: dict[str, Any] = {} if as_json is None else self._object(as_json)

    def _object(self, text: str) -> dict[str, Any]:
        try:
            # Raw keeps every number digit by digit.
            values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--args-json: expected a JSON object: {error}") from error
        for name in values:
            self._check_new(name)
        return values

    def _check_new(self, name: str) -> None:
        if name in self.texts:
            raise UsageError(f"argument {name!r:.80} was given twice")

    def job(self, app: "StreamJobs", kind: str, options: "EnqueueOptions", *, by_signature: bool) -> "Job":
        """Return the job; its kind is known to the app when `by_signature`.

        Raises:
            UsageError: the arguments do not fit, or there is no such kind.
        """
        if by_signature:
            handler = find_kind(app, kind)
            values = self._by_signature(handler.signature)
            return app.kind(handler.kind).options(**_named(options)).call_named(values)
        if self.words:
            raise UsageError(
                f"argument {self.words[0]!r:.80}: without -A nothing is known of the handler; name it: --arg NAME=VALUE"
            )
        texts = {name: _json_or_text(text) for name, text in self.texts.items()}
        return app.job_of(kind, {**texts, **self.values}, options)

    def _by_signature(self, signature: "Signature") -> dict[str, Any]:
        fields = {field.name: field.type for field in msgspec.structs.fields(signature.struct)}
        texts = dict(self.texts)
        if len(self.words) > len(signature.positional):
            takes = ", ".join(signature.positional) or "none"
            given = plural(len(self.words), "argument")
            raise UsageError(f"{signature.name}: {given} by position; it takes {takes}")
        for name, word in zip(signature.positional, self.words, strict=False):
            if name in texts or name in self.values:
                raise UsageError(f"{signature.name}: argument {name!r} was given twice")
            texts[name] = word
        values = {name: msgspec.json.decode(raw) for name, raw in self.values.items()}
        return values | {name: _typed(text, fields.get(name, Any)) for name, text in texts.items()}


def find_kind(app: "StreamJobs", name: str) -> "Handler":
    """Return the handler of a kind; the last part of its name is enough where only one ends so.

    Raises:
        UnknownKind: there is none, or there are several.
    """
    if app.registry.find(name) is None:
        ends = sorted(kind for kind in app.registry.all() if kind.rpartition(".")[2] == name)
        if len(ends) > 1:
            raise UnknownKind(f"kind {name!r:.80} could be {' or '.join(ends)}: write it in full")
        name = ends[0] if ends else name
    return app.registry.require(name)


def _named(options: "EnqueueOptions") -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__struct_fields__}


def argument(handler: "Handler | None", name: str, text: str) -> Any:
    """Return one argument from its text: by its type where the handler is known, else as JSON or text."""
    if handler is None:
        return _json_or_text(text)
    types = {field.name: field.type for field in msgspec.structs.fields(handler.signature.struct)}
    return _typed(text, types.get(name, Any))


def _json_or_text(text: str) -> Any:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text
    return msgspec.Raw(text.encode())


def _typed(text: str, kind: Any) -> Any:
    """Return the text itself where the type can be read from text, else what it says as JSON."""
    try:
        msgspec.convert(text, kind, strict=False)
    except (msgspec.ValidationError, NotImplementedError, ValueError):
        pass
    else:
        if kind is not Any:
            return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text
