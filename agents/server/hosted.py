"""Path operations of hosted matches."""

from collections.abc import AsyncIterator
from enum import Enum
from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.sse import format_sse_event

from retinue.agents.server import examples
from retinue.agents.server.admission import STREAM
from retinue.agents.server.bodies import documented, read_body
from retinue.agents.server.problems import ProblemError, responses
from retinue.agents.server.schemas import (
    HostedTurnRequest,
    MatchCreated,
    MatchRequest,
    MatchView,
    TurnAnswer,
)
from retinue.agents.server.service import Service
from retinue.agents.server.stateless import BODY_REFUSALS
from retinue.agents.server.store import ID_PATTERN
from retinue.envs.game.ruleset import Ruleset

TAGS: Final[list[str | Enum]] = ["hosted matches"]
JSON_LINES: Final = "application/jsonl"
LAST_TURN: Final = 10**7
"""No match has more turns."""

Id = Annotated[str, Path(pattern=ID_PATTERN, description="As it was given with the match.")]
_bearer = HTTPBearer(auto_error=False, description="The token of the seat that is to move.")
Token = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def add_operations(app: FastAPI, service: Service) -> None:
    """Add the operations of a service."""
    settings, hosting = service.settings, service.hosting
    wait = Query(
        ge=0,
        le=settings.longest_wait,
        description="Seconds to wait, at most, until no agent is to move.",
    )

    @app.post(
        "/v1/matches",
        tags=TAGS,
        status_code=201,
        responses={201: {"model": MatchCreated}, **responses(*BODY_REFUSALS, 503)},
        openapi_extra=documented(MatchRequest, examples.match_bodies()),
    )
    async def create(request: Request) -> Response:
        """Begin a match; the tokens of its human seats are shown only here."""
        asked = await read_body(request, MatchRequest, settings)
        tokens, match = await hosting.create(asked)
        location = {"Location": f"/v1/matches/{match.id}"}
        return JSONResponse({"tokens": tokens, "match": match.view()}, 201, location)

    @app.get("/v1/matches/{match_id}", tags=TAGS, responses=_answers(MatchView, 404, 422, 503))
    async def look(match_id: Id, wait: Annotated[int, wait] = 0) -> Response:
        """Show a match: its state, whose turn is due, and what that seat may choose."""
        match = await hosting.find(match_id)
        await hosting.settle(match, wait)
        return JSONResponse(match.view())

    @app.post(
        "/v1/matches/{match_id}/turns",
        tags=TAGS,
        responses=_answers(TurnAnswer, 401, 403, 404, 409, 410, *BODY_REFUSALS, 503),
        openapi_extra=documented(HostedTurnRequest, examples.turn_bodies()),
    )
    async def play(
        request: Request, match_id: Id, token: Token, wait: Annotated[int, wait] = 0
    ) -> Response:
        """Play a human seat's turn; it is on disk when this is answered."""
        asked = await read_body(request, HostedTurnRequest, settings)
        given = None if token is None else token.credentials
        match, line = await hosting.play(match_id, given, asked)
        await hosting.settle(match, wait)
        return JSONResponse({"line": line, "match": match.view()})

    @app.get("/v1/matches/{match_id}/rules", tags=TAGS, responses=_answers(Ruleset, 404, 422, 503))
    async def rules(match_id: Id) -> Response:
        """Give the rules under which a match is played."""
        match = await hosting.find(match_id)
        return JSONResponse(match.ruleset.model_dump(mode="json"))

    @app.get(
        "/v1/matches/{match_id}/record",
        tags=TAGS,
        response_class=Response,
        responses={200: {"content": {JSON_LINES: {}}}, **responses(404, 422, 503)},
    )
    async def record(match_id: Id) -> Response:
        """Give the match record so far; its header has the seed once the match is over."""
        name = {"Content-Disposition": f'attachment; filename="retinue-{match_id}.jsonl"'}
        return Response(await hosting.record(match_id), headers=name, media_type=JSON_LINES)

    @app.get(
        "/v1/matches/{match_id}/events",
        tags=TAGS,
        response_class=StreamingResponse,
        responses={200: {"content": {STREAM: {}}}, **responses(404, 422, 503)},
    )
    async def events(
        match_id: Id,
        after: Annotated[
            int, Query(ge=-1, le=LAST_TURN, description="Number of the last turn known.")
        ] = -1,
        last_event_id: Annotated[
            int | None, Header(ge=-1, le=LAST_TURN, description="The same, sent by browsers.")
        ] = None,
    ) -> Response:
        """Stream what has happened in a match and what happens, as server-sent events."""
        match = await hosting.find(match_id)
        if hosting.streams >= settings.streams:
            raise ProblemError(429, f"{hosting.streams} streams are open already")
        known = after if last_event_id is None else last_event_id
        return StreamingResponse(
            _as_text(hosting.events(match, known)),
            media_type=STREAM,
            headers={"X-Accel-Buffering": "no"},
        )


async def _as_text(events: AsyncIterator[tuple[str, str | None, int | None]]) -> Any:
    async for name, data, number in events:
        if data is None:
            yield format_sse_event(comment="ping")
        else:
            number_text = None if number is None else str(number)
            yield format_sse_event(data_str=data, event=name, id=number_text)


def _answers(model: type[Any], *refusals: int) -> dict[int | str, dict[str, Any]]:
    """Return how an operation documents what it answers."""
    return {200: {"model": model}, **responses(*refusals)}
