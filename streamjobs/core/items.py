"""The jobs of a batch kind: each is one item of the list that its handler takes, and its arguments are that item's
fields.
"""

import dataclasses
import inspect
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from streamjobs.core.codec import Arguments, DecodeFailed, Signature, reason
from streamjobs.core.errors import InvalidOption, UsageError


class ItemSignature(Signature):
    """The arguments of one job whose handler takes a list: on the wire they are those of any other kind."""

    def _arguments(
        self, parameters: list[inspect.Parameter], hints: dict[str, Any]
    ) -> tuple[list[inspect.Parameter], dict[str, Any]]:
        """Return the fields of the items as if they were parameters."""
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        hint = hints.get(parameters[0].name) if len(parameters) == 1 and parameters[0].kind in by_position else None
        if get_origin(hint) is not list:
            raise InvalidOption(
                f"{self.name}: with batch= a handler takes one list, such as docs: list[Doc], and before it perhaps"
                " ctx: BatchContext"
            )
        [self.item] = get_args(hint)
        fields, types = self._fields()
        # What has a default may stand before what has none, in a class; not in a signature.
        fields.sort(key=lambda field: field.default is not field.empty)
        return fields, types

    def _fields(self) -> tuple[list[inspect.Parameter], dict[str, Any]]:
        item, defaults = self.item, dict[str, Any]()
        try:
            types = get_type_hints(item, include_extras=True) if isinstance(item, type) else {}
        except Exception as error:
            raise InvalidOption(f"{self.name}: an annotation of {item!r:.80} cannot be resolved: {error}") from error
        if is_typeddict(item):
            if optional := sorted(item.__optional_keys__):
                raise InvalidOption(
                    f"{self.name}: {item.__name__} may lack {optional[0]!r}: use a dataclass, with a default"
                )
        elif isinstance(item, type) and issubclass(item, msgspec.Struct):
            for field in msgspec.structs.fields(item):
                defaults[field.name] = _default(field, msgspec.NODEFAULT)
        elif isinstance(item, type) and dataclasses.is_dataclass(item):
            for given in dataclasses.fields(item):
                if given.init:
                    defaults[given.name] = _default(given, dataclasses.MISSING)
        else:
            raise InvalidOption(
                f"{self.name}: the items of a batch are dataclasses, msgspec Structs or TypedDicts, whose fields are"
                f" the arguments of one job; not {item!r:.80}"
            )
        names = types if is_typeddict(item) else defaults
        empty, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
        return [inspect.Parameter(name, kind, default=defaults.get(name, empty)) for name in names], types

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, msgspec.Struct]:
        """As `Signature.bind`, for one item, or for its fields by name."""
        if len(args) == 1 and not kwargs and isinstance(args[0], dict if is_typeddict(self.item) else self.item):
            return super().bind((), self._values(args[0]))
        if args:
            given = ", ".join(type(one).__name__ for one in args)
            raise UsageError(f"{self.name}: expected one {self.item.__name__}, not {given}")
        body, arguments = super().bind((), kwargs)
        self._check_item(arguments)
        return body, arguments

    def _values(self, item: Any) -> dict[str, Any]:
        if isinstance(item, dict):
            return item
        return {name: getattr(item, name) for name in self.names}

    def check(self, body: bytes) -> msgspec.Struct:
        """As `Signature.check`; an item can be made of the arguments."""
        arguments = super().check(body)
        self._check_item(arguments)
        return arguments

    def _check_item(self, arguments: msgspec.Struct) -> None:
        try:
            self._make(msgspec.structs.astuple(arguments))
        except DecodeFailed as error:
            raise UsageError(f"{self.name}: {error}") from error

    def decode(self, body: bytes) -> Arguments:
        """Return the item of a body, as the one argument.

        Raises:
            DecodeFailed: as `Signature.decode`; or the class of the items refuses its fields.
        """
        values, _ = super().decode(body)
        return (self._make(values),), {}

    def _make(self, values: tuple[Any, ...]) -> Any:
        try:
            return self.item(**dict(zip(self.names, values, strict=True)))
        except Exception as error:
            raise DecodeFailed(f"arguments: {self.item.__name__}: {reason(error)}") from error

    def value(self, arguments: Arguments, name: str) -> Any:
        """Return one field of the item."""
        [item] = arguments[0]
        return item[name] if isinstance(item, dict) else getattr(item, name)


def _default(field: Any, missing: object) -> Any:
    """Return what a field has where nothing is given: its default, or a field of a Struct that makes one."""
    if field.default_factory is not missing:
        return msgspec.field(default_factory=field.default_factory)
    return inspect.Parameter.empty if field.default is missing else field.default
