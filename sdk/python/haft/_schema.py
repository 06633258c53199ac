"""JSON schemas from Python's annotations, and values that match them."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union

from ._errors import ToolSchemaError

_SCALARS: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def build_schema(kind: Any, where: str) -> dict[str, Any]:
    """Returns the JSON schema of the type ``kind``. ``where`` names its place in an error."""
    try:
        return _build(kind, where)
    except RecursionError:
        raise ToolSchemaError(f"{where.split('.')[0]}: {_name(kind)} contains itself") from None


def _build(kind: Any, where: str) -> dict[str, Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        schema = _build(arguments[0], where)
        for note in arguments[1:]:
            if isinstance(note, str):
                schema["description"] = note
        return schema
    if kind is Any:
        return {}
    if kind is None or kind is type(None):
        return {"type": "null"}
    if isinstance(kind, type) and kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if origin is Literal:
        return _choices(arguments, where)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_build(part, where) for part in arguments]}
    if kind is list or origin in (list, Sequence):
        items = _build(arguments[0], f"{where}[]") if arguments else {}
        return {"type": "array", "items": items}
    if kind is dict or origin in (dict, Mapping):
        if arguments and arguments[0] is not str:
            raise ToolSchemaError(f"{where}: the keys of a dict must be str, not {_name(arguments[0])}")
        values = _build(arguments[1], f"{where}{{}}") if arguments else {}
        return {"type": "object", "additionalProperties": values}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _choices([member.value for member in kind], where)
    if typing.is_typeddict(kind):
        fields = _hints(kind, where)
        required = [name for name in fields if name in _required_keys(kind)]
        return _object({name: _build(part, f"{where}.{name}") for name, part in fields.items()}, required)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        fields = _fields(kind, where)
        required = [field.name for field in dataclasses.fields(kind) if field.init and _is_required(field)]
        return _object({name: _build(part, f"{where}.{name}") for name, part in fields.items()}, required)
    raise ToolSchemaError(
        f"{where}: no JSON schema can be made for {_name(kind)}; use str, int, float, bool, None, list, dict, "
        "Literal, an Enum, a dataclass or a TypedDict"
    )


def convert_value(value: Any, kind: Any, where: str) -> Any:
    """Returns the JSON value ``value`` as an instance of the type ``kind``.

    Raises ``ValueError`` with a message for the model if the value does not match.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return convert_value(value, arguments[0], where)
    if kind is Any:
        return value
    if kind is None or kind is type(None):
        return _expect(value, value is None, "null", where)
    if kind is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(_expect(value, number, "a number", where))
    if kind is int:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        return _expect(value, whole, "an integer", where)
    if kind in (str, bool):
        return _expect(value, isinstance(value, kind), f"a {_SCALARS[kind]}", where)
    if origin is Literal:
        return _expect(value, _is_one_of(value, arguments), f"one of {list(arguments)}", where)
    if origin in (Union, types.UnionType):
        return _convert_union(value, arguments, where)
    if kind is list or origin in (list, Sequence):
        _expect(value, isinstance(value, list), "an array", where)
        part = arguments[0] if arguments else Any
        return [convert_value(item, part, f"{where}[{index}]") for index, item in enumerate(value)]
    if kind is dict or origin in (dict, Mapping):
        _expect(value, isinstance(value, dict), "an object", where)
        part = arguments[1] if arguments else Any
        return {key: convert_value(item, part, f"{where}.{key}") for key, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        choices = [member.value for member in kind]
        return kind(_expect(value, _is_one_of(value, choices), f"one of {choices}", where))
    _expect(value, isinstance(value, dict), "an object", where)
    if typing.is_typeddict(kind):
        return convert_fields(value, _hints(kind, where), _required_keys(kind), where)
    required = {field.name for field in dataclasses.fields(kind) if field.init and _is_required(field)}
    return kind(**convert_fields(value, _fields(kind, where), required, where))


def convert_fields(
    values: Mapping[str, Any], kinds: Mapping[str, Any], required: typing.Collection[str], where: str
) -> dict[str, Any]:
    """Converts the fields of an object. ``where`` is empty for the arguments of a call."""
    prefix = f"{where}." if where else ""
    for name in required:
        if name not in values:
            raise ValueError(f"`{prefix}{name}` is missing")
    for name in values:
        if name not in kinds:
            raise ValueError(f"`{prefix}{name}` is unknown; known are: {', '.join(kinds) or 'none'}")
    return {name: convert_value(value, kinds[name], f"{prefix}{name}") for name, value in values.items()}


def resolve_hints(function: Callable[..., Any] | type, where: str) -> dict[str, Any]:
    """Returns the annotations of a function or a class, with names resolved."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolSchemaError(f"{where}: the annotations cannot be read: {error}") from error


def _choices(values: Sequence[Any], where: str) -> dict[str, Any]:
    if not all(isinstance(value, (str, int, bool)) for value in values):
        raise ToolSchemaError(f"{where}: only str, int and bool can be choices, not {list(values)}")
    return {"enum": list(values)}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _hints(kind: type, where: str) -> dict[str, Any]:
    hints = resolve_hints(kind, where)
    # `Required` and `NotRequired` are not part of the type.
    wrappers = (typing.Required, typing.NotRequired)
    return {
        name: typing.get_args(hint)[0] if typing.get_origin(hint) in wrappers else hint for name, hint in hints.items()
    }


def _required_keys(kind: Any) -> set[str]:
    """The keys of a TypedDict that must be present. Python itself does not see `NotRequired` and
    `Required` if annotations are strings."""
    keys = set(kind.__required_keys__)
    for name, hint in resolve_hints(kind, "").items():
        if typing.get_origin(hint) is typing.NotRequired:
            keys.discard(name)
        elif typing.get_origin(hint) is typing.Required:
            keys.add(name)
    return keys


def _fields(kind: Any, where: str) -> dict[str, Any]:
    hints = _hints(kind, where)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _convert_union(value: Any, parts: Sequence[Any], where: str) -> Any:
    problems = []
    for part in parts:
        try:
            return convert_value(value, part, where)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError("; or ".join(problems))


def _is_one_of(value: Any, choices: Sequence[Any]) -> bool:
    # `True == 1`, but they are different in JSON.
    return any(value == choice and type(value) is type(choice) for choice in choices)


def _expect(value: Any, holds: bool, wanted: str, where: str) -> Any:
    if not holds:
        raise ValueError(f"`{where}` must be {wanted}, not {value!r:.80}")
    return value


def _name(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else str(kind)
