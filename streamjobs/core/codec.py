"""Arguments on the wire: a function's signature becomes a msgspec Struct, its JSON the body.

Also the two other encodings of the wire format: meta, and the envelope of scheduled jobs.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeAlias, get_origin, get_type_hints

import msgspec

from streamjobs.core.errors import InvalidOption, PayloadTooLarge, UsageError
from streamjobs.core.job import WIRE_VERSION, Meta
from streamjobs.core.names import MAX_PAYLOAD_BYTES, is_local_id
from streamjobs.core.text import error_text


class DecodeFailed(Exception):
    """A body or a meta that cannot be what it should be; the text says why."""


def _enc_hook(value: Any) -> Any:
    """Encode pydantic models by their own rules, without importing pydantic."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise NotImplementedError(f"objects of type {type(value).__name__} cannot be encoded as JSON")


def _without_raw(value: Any) -> Any:
    """As `_enc_hook`; what is JSON already holds no NaN."""
    return None if isinstance(value, msgspec.Raw) else _enc_hook(value)


def _dec_hook(kind: type, value: Any) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    raise NotImplementedError(f"objects of type {kind.__name__} cannot be decoded from JSON")


_PLAIN = (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError)
"""What encoding and decoding raise of themselves: their texts say enough. The classes of arguments and results are
the users', with validators of their own, and raise anything.
"""

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and by name, as a handler is called with them."""

_encoder = msgspec.json.Encoder(enc_hook=_enc_hook)
_sorted_encoder = msgspec.json.Encoder(enc_hook=_enc_hook, order="sorted")
_meta_decoder = msgspec.json.Decoder(Meta)


class Signature:
    """The arguments of one function: how they are bound, encoded, checked and given back.

    Built once, at registration; refuses there what could only fail later.
    """

    def __init__(self, function: Callable[..., Any], *, context: type, kind: str = "") -> None:
        """Read the signature of `function`; a first parameter annotated `context` is left out.

        Errors name the kind, or else the function.

        Raises:
            InvalidOption: an annotation cannot be resolved, a type cannot be encoded, or the
                function takes `*args` or `**kwargs`.
        """
        self.name = kind or f"{function.__module__}.{function.__qualname__}"
        try:
            hints = get_type_hints(function, include_extras=True)
        except Exception as error:
            raise InvalidOption(f"{self.name}: an annotation cannot be resolved: {error}") from error
        parameters = list(inspect.signature(function).parameters.values())
        self.wants_context = bool(parameters) and _is_context(hints.get(parameters[0].name), context)
        if self.wants_context:
            parameters = parameters[1:]
        parameters, hints = self._arguments(parameters, hints)
        self._keyword_only = any(p.kind is p.KEYWORD_ONLY for p in parameters)
        self.positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        """Names of the arguments that can be given by position, in order."""
        self.names = [p.name for p in parameters]
        """Names of all arguments."""
        self._returns = hints.get("return", Any)
        self.struct = self._build(parameters, hints)
        self._decoder = msgspec.json.Decoder(self.struct, dec_hook=_dec_hook)

    def _arguments(
        self, parameters: list[inspect.Parameter], hints: dict[str, Any]
    ) -> tuple[list[inspect.Parameter], dict[str, Any]]:
        """Return the arguments of one job, and all annotations by name."""
        return parameters, hints

    def _build(self, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> type[msgspec.Struct]:
        fields: list[Any] = []
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise InvalidOption(f"{self.name}: *args and **kwargs have no names on the wire; name each argument")
            hint = hints.get(parameter.name, Any)
            self._check_type(parameter.name, hint)
            field = (parameter.name, hint)
            fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
        try:
            return msgspec.defstruct("Arguments", fields, kw_only=self._keyword_only, forbid_unknown_fields=True)
        except (TypeError, ValueError) as error:
            raise InvalidOption(f"{self.name}: {error}") from error

    def _check_type(self, name: str, hint: Any) -> None:
        try:
            unknown = _custom_type(msgspec.inspect.type_info(hint), set())
            msgspec.json.Decoder(hint, dec_hook=_dec_hook)
        except (TypeError, NameError) as error:
            raise InvalidOption(f"{self.name}: argument {name!r}: {error}") from error
        if unknown is not None:
            raise InvalidOption(
                f"{self.name}: argument {name!r}: {unknown.__name__} cannot be encoded as JSON; pass an id,"
                " a dataclass, a msgspec Struct or a pydantic model"
            )

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, msgspec.Struct]:
        """Return the body for these arguments, checked as the worker will check it, and as fields what it will get.

        Raises:
            UsageError: they do not fit the signature, or cannot be encoded.
            PayloadTooLarge: the body exceeds 256 KiB.
        """
        try:
            if self._keyword_only:
                args, kwargs = (), self._by_name(args, kwargs)
            body = _encoder.encode(self.struct(*args, **kwargs))
            arguments: msgspec.Struct = self._decoder.decode(body)
        except Exception as error:
            raise UsageError(f"{self.name}: {reason(error)}") from error
        _check_body(body, (args, kwargs), self.name)
        return body, arguments

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Return the body for these arguments; as `bind`."""
        return self.bind(args, kwargs)[0]

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(self.positional):
            raise TypeError(f"takes {len(self.positional)} positional arguments, {len(args)} were given")
        named = dict(zip(self.positional, args, strict=False))
        if twice := named.keys() & kwargs.keys():
            raise TypeError(f"argument {min(twice)!r} was given twice")
        return named | kwargs

    def convert(self, values: dict[str, Any]) -> tuple[bytes, msgspec.Struct]:
        """As `bind`, for arguments by name in text or JSON form, as the command line has them."""
        try:
            arguments = msgspec.convert(values, self.struct, strict=False, dec_hook=_dec_hook)
        except Exception as error:
            raise UsageError(f"{self.name}: {reason(error)}") from error
        return self.bind((), msgspec.structs.asdict(arguments))

    def argument(self, name: str, value: Any) -> bytes:
        """Return one argument as JSON, from its text or JSON form.

        Raises:
            UsageError: there is no such argument, or the value is not of its type.
        """
        types = {field.name: field.type for field in msgspec.structs.fields(self.struct)}
        if name not in types:
            raise UsageError(f"{self.name}: there is no argument {name!r:.80}; it has {', '.join(types) or 'none'}")
        try:
            converted = msgspec.convert(value, types[name], strict=False, dec_hook=_dec_hook)
        except Exception as error:
            raise UsageError(f"{self.name}: argument {name!r}: {reason(error)}") from error
        return encode_value(converted, f"{self.name}: argument {name!r}")

    def check(self, body: bytes) -> msgspec.Struct:
        """Return the arguments of a body as fields; raise UsageError if it does not fit the signature."""
        try:
            arguments: msgspec.Struct = self._decoder.decode(body)
        except Exception as error:
            raise UsageError(f"{self.name}: {reason(error)}") from error
        return arguments

    def result(self, value: Any) -> Any:
        """Return a kept result as the type that the function is annotated to return.

        Raises:
            UsageError: it is not of that type, since another version of the function returned it.
        """
        try:
            return msgspec.convert(value, self._returns, str_keys=True, dec_hook=_dec_hook)
        except (TypeError, NotImplementedError):
            # No type that could be decoded: the value as JSON had it.
            return value
        except Exception as error:
            raise UsageError(
                f"{self.name}: the result is not what it is annotated to return: {reason(error)}"
            ) from error

    def decode(self, body: bytes) -> Arguments:
        """Return positional and keyword arguments of a body.

        Raises:
            DecodeFailed: the body is not JSON, does not fit the signature, or exceeds 256 KiB, whoever wrote it; or
                a class of the arguments raised anything at all.
        """
        if len(body) > MAX_PAYLOAD_BYTES:
            raise DecodeFailed(f"arguments: {len(body)} bytes, the limit is {MAX_PAYLOAD_BYTES}")
        try:
            arguments = self._decoder.decode(body)
        except Exception as error:
            raise DecodeFailed(f"arguments: {reason(error)}") from error
        if self._keyword_only:
            values = msgspec.structs.asdict(arguments)
            return tuple(values.pop(name) for name in self.positional), values
        return msgspec.structs.astuple(arguments), {}

    def value(self, arguments: Arguments, name: str) -> Any:
        """Return one of the arguments that `decode` returned."""
        positional, named = arguments
        return named[name] if name in named else positional[self.positional.index(name)]


def _is_context(hint: Any, context: type) -> bool:
    return hint is context or get_origin(hint) is context


def _custom_type(info: Any, seen: set[int]) -> type | None:
    """Return a type inside `info` that JSON cannot carry, or None; `seen` ends the walk of recursive types."""
    if isinstance(info, msgspec.inspect.CustomType):
        return None if hasattr(info.cls, "model_validate") else info.cls
    inner = [field.type for field in getattr(info, "fields", ())]
    for name in ("item_type", "key_type", "value_type", "item_types", "types"):
        part = getattr(info, name, ())
        inner += part if isinstance(part, tuple) else (part,)
    seen.add(id(info))
    found = (_custom_type(one, seen) for one in inner if id(one) not in seen)
    return next((one for one in found if one is not None), None)


def _refuse_nan(value: Any, name: str) -> None:
    """Refuse NaN and the infinities, which JSON encoders turn into null without a word."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name}: {value} has no JSON form; pass None or a string")
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        for item in value:
            _refuse_nan(item, name)


def reason(error: BaseException) -> str:
    """Return why a value was refused: in plain words, or as an error that a user's class raised."""
    if isinstance(error, UnicodeEncodeError):
        return "a string holds a lone surrogate, which has no UTF-8 form"
    name = type(error).__name__
    text = error_text(error)
    if not isinstance(error, _PLAIN):
        return text
    text = text.removeprefix(f"{name}: ").removeprefix("Arguments.__init__() ").removeprefix("Arguments() ")
    return text.replace("Object missing required field", "missing argument") or name


def encode_json(value: Any) -> bytes:
    """Return a value of our own as JSON; it needs no checks."""
    return _encoder.encode(value)


def canonical(value: Any) -> bytes:
    """Return a value as JSON that is the same for equal values: sorted names and sets, no spaces.

    Raises:
        UsageError: it has no such form.
    """
    try:
        return _sorted_encoder.encode(value)
    except Exception as error:
        raise UsageError(f"{type(value).__name__}: {reason(error)}") from error


def encode_object(values: dict[str, Any], what: str) -> bytes:
    """Return a body for arguments of a kind whose handler is not known here.

    Raises:
        UsageError: they are not a JSON object.
        PayloadTooLarge: over 256 KiB.
    """
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise UsageError(f"{what}: arguments must be an object with names, such as {{'user_id': 1}}")
    return encode_value(values, what)


def encode_value(value: Any, what: str) -> bytes:
    """Return `value` as JSON that says the same when it is decoded.

    Raises:
        UsageError: it has no such form, or its class raised anything at all.
        PayloadTooLarge: over 256 KiB.
    """
    try:
        body = _encoder.encode(value)
    except Exception as error:
        raise UsageError(f"{what}: {reason(error)}") from error
    _check_body(body, value, what)
    return body


def decode_value(raw: bytes, kind: Any, what: str) -> Any:
    """Return a value that `encode_value` wrote, as an instance of the type `kind`.

    Raises:
        UsageError: it is not of that type.
    """
    try:
        return msgspec.json.decode(raw, type=kind, dec_hook=_dec_hook)
    except Exception as error:
        raise UsageError(f"{what} cannot be had as {getattr(kind, '__name__', kind)}: {reason(error)}") from error


def _check_body(body: bytes, value: Any, what: str) -> None:
    if len(body) > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(
            f"{what}: {len(body)} bytes encoded, the limit is {MAX_PAYLOAD_BYTES}:"
            " store it elsewhere and pass a reference"
        )
    if not body.isascii():
        _refuse_bytes(body, what)
    if b"null" in body:
        try:
            _refuse_nan(msgspec.to_builtins(value, enc_hook=_without_raw), what)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"{what}: {reason(error)}") from error


def _refuse_bytes(body: bytes, what: str) -> None:
    """Refuse what is not UTF-8: a `msgspec.Raw` is taken over as it is."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: byte 0x{body[error.start]:02x} in the arguments is not UTF-8") from error


def encode_meta(meta: Meta) -> bytes:
    """Return the wire form of `meta`: nothing at all for a fresh one."""
    body = _encoder.encode(meta)
    return b"" if body == b"{}" else body


def decode_meta(raw: bytes) -> Meta:
    """Return the meta of an entry.

    Raises:
        DecodeFailed: it is not a meta of a version that is known here, or holds what none of its writers would.
    """
    if not raw:
        return _EMPTY
    try:
        meta = _meta_decoder.decode(raw)
    except (ValueError, RecursionError) as error:
        raise DecodeFailed(f"meta: {reason(error)}") from error
    if meta.version != WIRE_VERSION:
        raise DecodeFailed(f"meta: version {meta.version} is not {WIRE_VERSION}, the one known here")
    if meta.id and not is_local_id(meta.id):
        raise DecodeFailed(f"meta: id {meta.id!r:.80} is none that a server gives")
    return meta


_EMPTY = Meta()


def split_envelope(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Return kind, body and meta of a scheduled job's envelope (`<len kind>:<len body>:` kind body meta)."""
    kind_size, body_size, rest = raw.split(b":", 2)
    end = int(kind_size) + int(body_size)
    return rest[: int(kind_size)], rest[int(kind_size) : end], rest[end:]
