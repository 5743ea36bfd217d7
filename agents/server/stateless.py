"""Path operations that keep nothing: what there is, decisions, the referee."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeAlias

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from retinue.agents.server import examples
from retinue.agents.server.bodies import documented, read_body
from retinue.agents.server.deciding import Answer, Question, key_of
from retinue.agents.server.geometry import board_answer
from retinue.agents.server.positions import (
    legal_of,
    played,
    position_of,
    roll_of,
    verdict_on,
)
from retinue.agents.server.problems import ProblemError, invalid, responses
from retinue.agents.server.schemas import (
    AgentsAnswer,
    BatchAnswer,
    BatchRequest,
    BoardAnswer,
    DecideAnswer,
    DecideRequest,
    LegalAnswer,
    LegalRequest,
    Mode,
    Plain,
    PlayAnswer,
    PlayRequest,
    RollAnswer,
    RollRequest,
    RulesAnswer,
)
from retinue.agents.server.service import Service
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import new_game, state_to_json

BODY_REFUSALS = (408, 413, 415, 422)

_Operation: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]


def add_operations(app: FastAPI, service: Service) -> None:
    """Add the operations of a service, those first that are asked for most."""
    _add_decisions(app, service)
    _add_referee(app, service)
    _add_lists(app, service)


def _add_lists(app: FastAPI, service: Service) -> None:
    listing = service.roster.listing()

    @app.get("/v1/agents", tags=["what there is"], responses=_answers(AgentsAnswer))
    async def agents() -> Response:
        """List the agents that can be asked and given a seat, with what was measured of them."""
        return JSONResponse(listing)

    @app.get("/v1/rules/{mode}", tags=["what there is"], responses=_answers(RulesAnswer, 422))
    async def rules(mode: Mode) -> Response:
        """Give the rules of a mode, and the state in which its matches start."""
        ruleset = load_ruleset(mode)
        return JSONResponse(
            {
                "mode": mode,
                "digest": ruleset.digest,
                "rules": ruleset.model_dump(mode="json"),
                "start": state_to_json(new_game(ruleset)),
            }
        )

    @app.get("/v1/board", tags=["what there is"], responses=_answers(BoardAnswer, 422))
    async def board(home_path_tiles: Annotated[int, Query(ge=1, le=20)] = 7) -> Response:
        """Give the board's tiles: where to draw them, and their numbers for each seat."""
        return JSONResponse(board_answer(home_path_tiles))


def _add_decisions(app: FastAPI, service: Service) -> None:
    settings = service.settings

    def question_of(asked: DecideRequest) -> Question:
        cast = service.roster.find(asked.agent)
        game, ruleset = position_of(asked)
        return Question(cast, ruleset, game, key_of(asked.seed), asked.explain)

    @_post(
        app,
        "/v1/decide",
        tags=["decisions"],
        responses=_answers(DecideAnswer, *BODY_REFUSALS),
        openapi_extra=documented(DecideRequest, examples.decide_bodies()),
    )
    async def decide(request: Request) -> Response:
        """Let an agent choose a turn in a position."""
        asked = await read_body(request, DecideRequest, settings)
        (answer,) = await service.decider.ask([question_of(asked)])
        return JSONResponse(_decision(asked.agent, answer))

    @_post(
        app,
        "/v1/decide/batch",
        tags=["decisions"],
        responses=_answers(BatchAnswer, *BODY_REFUSALS),
        openapi_extra=documented(BatchRequest, examples.batch_bodies()),
    )
    async def decide_batch(request: Request) -> Response:
        """Let agents choose turns in many positions; one that does not fit refuses all."""
        batch = await read_body(request, BatchRequest, settings)
        asked = batch.decisions
        if len(asked) > settings.batch:
            most = settings.batch
            raise ProblemError(413, f"{len(asked)} positions; at most {most} at once", "decisions")
        if sum(each.explain for each in asked) > settings.explained:
            most = settings.explained
            raise ProblemError(413, f"explain: at most {most} alternatives in all", "decisions")
        questions = []
        for index, each in enumerate(asked):
            try:
                question = question_of(each)
                if question.cast.takes_long and len(asked) > 1:
                    raise invalid("agent", f"{each.agent} takes long: ask it by POST /v1/decide")
                questions.append(question)
            except ProblemError as error:
                raise error.within(f"decisions[{index}]") from error
        answers = await service.decider.ask(questions)
        decisions = [
            _decision(each.agent, answer) for each, answer in zip(asked, answers, strict=True)
        ]
        return JSONResponse({"decisions": decisions})


def _add_referee(app: FastAPI, service: Service) -> None:
    settings = service.settings

    @_post(
        app,
        "/v1/referee/roll",
        tags=["referee"],
        responses=_answers(RollAnswer, *BODY_REFUSALS),
        openapi_extra=documented(RollRequest, examples.roll_bodies()),
    )
    async def roll(request: Request) -> Response:
        """Roll the dice of the seat to move, or receive dice that fell elsewhere."""
        return JSONResponse(roll_of(await read_body(request, RollRequest, settings)))

    @_post(
        app,
        "/v1/referee/legal",
        tags=["referee"],
        responses=_answers(LegalAnswer, *BODY_REFUSALS),
        openapi_extra=documented(LegalRequest, examples.legal_bodies()),
    )
    async def legal(request: Request) -> Response:
        """Say what the seat to move may choose, and judge a turn if one is given."""
        asked = await read_body(request, LegalRequest, settings)
        game, ruleset = position_of(asked)
        verdict = None if asked.turn is None else verdict_on(game, ruleset, asked.turn)
        return JSONResponse({"legal": legal_of(game, ruleset), "verdict": verdict})

    @_post(
        app,
        "/v1/referee/play",
        tags=["referee"],
        responses=_answers(PlayAnswer, *BODY_REFUSALS),
        openapi_extra=documented(PlayRequest, examples.play_bodies()),
    )
    async def play(request: Request) -> Response:
        """Play a turn: give its line of a match record, and what comes next."""
        asked = await read_body(request, PlayRequest, settings)
        return JSONResponse(played(asked, asked.turn))


class _DirectRoute(APIRoute):
    """A route whose operation is given the request as it is: there is nothing to be injected.

    What FastAPI does to find that out would take a tenth of the time of a decision.
    """

    def get_route_handler(self) -> _Operation:
        """Return the operation."""
        operation: _Operation = self.endpoint
        return operation


def _post(app: FastAPI, path: str, **described: Any) -> Callable[[_Operation], _Operation]:
    """Add an operation that takes a body and nothing else."""

    def add(operation: _Operation) -> _Operation:
        app.router.add_api_route(
            path, operation, methods=["POST"], route_class_override=_DirectRoute, **described
        )
        return operation

    return add


def _answers(model: type[Any], *refusals: int) -> dict[int | str, dict[str, Any]]:
    """Return how an operation documents what it answers."""
    return {200: {"model": model}, **responses(*refusals)}


def _decision(agent: str, answer: Answer) -> Plain:
    """Return a ``DecideAnswer``."""
    return {
        "agent": agent,
        "turn": turn_to_json(answer.turn),
        "explanation": answer.explanation,
    }
