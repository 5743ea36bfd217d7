"""Bodies of requests: read within limits, strictly, into the models that the schema shows."""

import asyncio
from typing import Any, TypeVar

from fastapi import Request
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from retinue.agents.server.problems import ProblemError, invalid
from retinue.agents.server.settings import Settings
from retinue.envs.game.schema import SchemaError, StrictModel, fault_of, from_json

M = TypeVar("M", bound=StrictModel)

COMPONENTS = "#/components/schemas/{model}"


async def read_body(request: Request, model: type[M], settings: Settings) -> M:
    """Return what a request's body says.

    FastAPI's own way would turn the JSON into Python's objects first, of which a strict model takes
    no lists where tuples stand; and it would take a key that stands twice, and ``NaN``.

    Args:
        request: its content type must be JSON's.
        model: of the body.
        settings: how large it may be, and in which time it must arrive.

    Raises:
        ProblemError: 408, 413, 415, 422.
    """
    _check_type(request.headers.get("content-type", ""))
    seconds = settings.body_seconds
    try:
        async with asyncio.timeout(seconds):
            content = await _content(request, settings.body_bytes)
    except TimeoutError:
        raise ProblemError(408, f"the body did not arrive within {seconds:g} seconds") from None
    except ClientDisconnect:
        raise ProblemError(408, "the body did not arrive") from None
    return parse(content, model)


async def _content(request: Request, most: int) -> bytes:
    """Return a body, of which no more is read than it may have."""
    declared = request.headers.get("content-length", "")
    content = bytearray()
    if not declared.isdecimal() or int(declared) <= most:
        async for chunk in request.stream():
            content += chunk
            if len(content) > most:
                break
        else:
            return bytes(content)
    raise ProblemError(413, f"the body has more than {most:,} bytes")


def parse(content: bytes, model: type[M]) -> M:
    """Return what JSON says.

    Raises:
        ProblemError: 422, with the place and what would be right.
    """
    try:
        return from_json(model, content.decode())
    except UnicodeDecodeError as error:
        raise invalid(None, "the body is not UTF-8 text") from error
    except SchemaError as error:
        cause = error.__cause__
        if isinstance(cause, ValidationError):
            field, reason = fault_of(cause, model)
            raise invalid(field or None, reason) from error
        raise invalid(None, error) from error


def _check_type(content_type: str) -> None:
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [each.partition("=")[2].strip('"') for each in parameters if "charset=" in each]
    if kind != "application/json" or any(each != "utf-8" for each in charsets):
        raise ProblemError(415, "the body must be application/json in UTF-8")


def documented(model: type[StrictModel], examples: dict[str, Any]) -> dict[str, Any]:
    """Return how a path operation documents its body.

    Args:
        model: of it.
        examples: bodies by name.
    """
    shown = {name: {"value": value} for name, value in examples.items()}
    schema = {"$ref": COMPONENTS.format(model=model.__name__)}
    content = {"application/json": {"schema": schema, "examples": shown}}
    return {"requestBody": {"required": True, "content": content}}
