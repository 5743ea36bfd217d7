"""What a request can be told in place of an answer, always in the same form."""

import logging
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.exceptions import HTTPException

from retinue.envs.game.schema import StrictModel

CODES: Final = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    410: "expired",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many",
    500: "internal",
    503: "unavailable",
}
"""By status; an illegal turn is a 422 with a code of its own."""
ILLEGAL_TURN: Final = "illegal_turn"
RETRY_SECONDS: Final = 1
_LONGEST: Final = 400
"""Characters of a reason: it may quote what was sent."""

log = logging.getLogger("retinue.server")


class Problem(StrictModel):
    """Why a request was refused."""

    code: str = Field(examples=["invalid"])
    field: str | None = Field(examples=["state.position[0][2]"])
    """What in the request is to blame; null if nothing in particular is."""
    reason: str = Field(examples=["is missing"])


class ProblemAnswer(StrictModel):
    """The body of every answer that is none."""

    error: Problem


class ProblemError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        reason: one line that says what would be right.
        field: what in the request is to blame.
        code: if it is not that of the status.
    """

    def __init__(
        self, status: int, reason: str, field: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} ..."
        self.field = field
        self.code = code or CODES[status]

    def within(self, place: str) -> "ProblemError":
        """Return the same of something that is a part, at ``place``, of the request."""
        field = f"{place}.{self.field}" if self.field else place
        return ProblemError(self.status, self.reason, field, self.code)


def invalid(field: str | None, reason: object) -> ProblemError:
    """Return that something in the request does not fit."""
    return ProblemError(422, str(reason), field)


def as_response(problem: ProblemError) -> JSONResponse:
    """Return what is sent."""
    error = {"code": problem.code, "field": problem.field, "reason": problem.reason}
    headers = {
        401: {"WWW-Authenticate": "Bearer"},
        408: {"Connection": "close"},
        413: {"Connection": "close"},  # the rest of the body is not waited for
        429: {"Retry-After": str(RETRY_SECONDS)},
    }
    return JSONResponse({"error": error}, problem.status, headers.get(problem.status))


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how a path operation documents its refusals, besides those that any may give."""
    return {
        status: {"model": ProblemAnswer, "description": HTTPStatus(status).phrase}
        for status in sorted({*statuses, 429})
    }


def install(app: FastAPI) -> None:
    """Let every refusal have this form, also those of the framework."""

    async def problem(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ProblemError)
        return as_response(error)

    async def of_framework(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        status = error.status_code if error.status_code in CODES else 422
        reason = str(error.detail)
        if status == 404:
            reason = f"there is no {request.url.path}"
        elif status == 405:
            reason = f"{request.url.path} takes no {request.method}"
        response = as_response(ProblemError(status, reason))
        response.headers.update(error.headers or {})
        return response

    async def of_parameters(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        return as_response(invalid(str(first["loc"][-1]), first["msg"]))

    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        return as_response(ProblemError(500, "a fault of the service's, which has been logged"))

    app.add_exception_handler(ProblemError, problem)
    app.add_exception_handler(HTTPException, of_framework)
    app.add_exception_handler(RequestValidationError, of_parameters)
    app.add_exception_handler(Exception, unforeseen)
