"""Schemathesis asks the service whatever its schema allows, and what it does not."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from retinue.agents.server import schemas
from serving_process import Running, running

SECONDS = 30.0
"""For all operations and both ways of asking."""
EXAMPLES = 60
NOT_CHECKED = [positive_data_acceptance]
"""A state may have the right form and yet be none that a match could show."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served"), "--most-matches", "40") as found:
        yield found


@pytest.mark.parametrize("mode", list(GenerationMode), ids=str)
def test_whatever_is_asked_is_answered_as_the_schema_says(
    service: Running, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_url(f"{service.client.base_url}/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    assert len(operations) == 16
    for operation in operations:
        if mode is GenerationMode.POSITIVE or operation.body or list(operation.iter_parameters()):
            assert ask(operation, mode, SECONDS / 2 / len(operations)) > 0


def ask(operation: Any, mode: GenerationMode, seconds: float) -> int:
    """Ask for one operation for some seconds at most, but once; return how often it was asked."""
    deadline, asked = time.monotonic() + seconds, 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        nonlocal asked
        if not asked or time.monotonic() < deadline:  # drawing the first may take long
            case.call_and_validate(excluded_checks=NOT_CHECKED)
            asked += 1

    check()
    return asked


def test_the_schema_knows_every_body(service: Running) -> None:
    found = service.client.get("/openapi.json").json()
    known = found["components"]["schemas"]
    assert {model.__name__ for model in schemas.REQUESTS} <= set(known)
    assert known["DecideRequest"]["additionalProperties"] is False
    text = service.client.get("/openapi.json").text
    named = set(text.split('"#/components/schemas/')[1:])
    assert {part.split('"')[0] for part in named} <= set(known)
