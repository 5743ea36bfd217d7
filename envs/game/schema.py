"""Strict reading of YAML and JSON into pydantic models, with errors a person can act on."""

import difflib
import json
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

M = TypeVar("M", bound="StrictModel")


class SchemaError(ValueError):
    """Input that does not fit its schema; the message says where, what, and what would be right."""


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys and silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _place(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the keys known where an unknown one was found; empty if that is not a plain model."""
    for part in location[:-1]:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def fault_of(error: ValidationError, model: type[BaseModel]) -> tuple[str, str]:
    """Return the first thing that pydantic found wrong in ``model``: its place, and what it is.

    The place is as ``key.key[index]``, empty for the whole.
    """
    first = error.errors(include_url=False)[0]
    location = tuple(first["loc"])
    place = _place(location)
    if first["type"] == "extra_forbidden":
        known = _known_keys(model, location)
        close = difflib.get_close_matches(str(location[-1]), known, 1)
        hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
        return place, f"unknown key; {hint}" if known else "unknown key"
    if first["type"] == "missing":
        return place, "is missing"
    message = first["msg"].removeprefix("Value error, ")
    given = "" if first["type"] == "value_error" else f", not {first['input']!r:.80}"
    return place, f"{message}{given}"


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return one line for the first thing that pydantic found wrong in ``model``."""
    place, reason = fault_of(error, model)
    return f"{place}: {reason}" if place else reason


class _UniqueKeyLoader(yaml.SafeLoader):
    """Safe YAML in which a key that stands twice is an error, not the last one's win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e-3 as text, since the point is missing; everybody else reads a number.
_UniqueKeyLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$", re.ASCII),
    list("-+.0123456789"),
)


def parse_yaml(text: str) -> Any:
    """Return what YAML text says.

    Raises:
        SchemaError: it is no YAML, or a key stands twice.
    """
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except Exception as error:  # besides its own, whatever Python's int, date ... raise inside it
        raise SchemaError(f"not valid YAML: {' '.join(str(error).split())}") from error


def read_yaml(path: Path | str) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        SchemaError: the file cannot be read, is no YAML or no mapping; the message names it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise SchemaError(f"{path}: {reason}") from error
    try:
        data = parse_yaml(text)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise SchemaError(f"{path}: must hold keys and values, not {type(data).__name__}")
    return data


def _refuse_twins(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise SchemaError(f"key {key!r} stands twice")
        seen.add(key)


def from_json(model: type[M], text: str) -> M:
    """Return ``model`` made from JSON.

    Raises:
        SchemaError: with the key and what would be right.
    """
    try:
        made = model.model_validate_json(text)
    except ValidationError as error:
        raise SchemaError(explain(error, model)) from error
    # pydantic takes the last of two equal keys without a word.
    json.loads(text, object_pairs_hook=_refuse_twins)
    return made


def build(model: type[M], data: Any, source: str) -> M:
    """Return ``model`` made from plain data (as JSON or YAML give it).

    Raises:
        SchemaError: with ``source``, the key and what would be right.
    """
    try:
        # Through JSON, since strict validation of Python data refuses lists where tuples stand.
        return from_json(model, json.dumps(data, default=str))
    except (ValueError, TypeError, RecursionError) as error:  # SchemaError or from json.dumps
        raise SchemaError(f"{source}: {error}") from error
