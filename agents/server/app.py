"""The application: every path operation, its limits, and the schema that says all of it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic.json_schema import models_json_schema

from retinue import __version__
from retinue.agents.server import hosted, problems, stateless
from retinue.agents.server.admission import Admission
from retinue.agents.server.bodies import COMPONENTS
from retinue.agents.server.metrics import CONTENT_TYPE
from retinue.agents.server.schemas import REQUESTS, HealthAnswer
from retinue.agents.server.service import Service

PAGE: Final = Path(__file__).with_name("static")
INDEX: Final = "index.html"
_DESCRIPTION: Final = (
    "Opponents, a referee and hosted matches for frontends in any language. States, rules, turns "
    "and results are those of Retinue's match record. Every refusal has the form ProblemAnswer."
)


def create_app(service: Service) -> FastAPI:
    """Return the application of a service, which starts and ends with it."""

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            await service.stop()

    app = _Described(
        title="Retinue",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=life,
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        separate_input_output_schemas=False,
        redirect_slashes=False,
    )
    problems.install(app)
    app.add_middleware(Admission, most=service.settings.in_flight, metrics=service.metrics)
    if service.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "Last-Event-ID"],
            expose_headers=["Location", "Retry-After"],
        )
    stateless.add_operations(app, service)
    hosted.add_operations(app, service)
    _add_state(app, service)
    _add_page(app)
    return app


class _Described(FastAPI):
    """Adds the bodies of requests, which it does not read itself, to the schema."""

    def openapi(self) -> dict[str, Any]:
        """Return the schema."""
        if self.openapi_schema is None:
            schema = super().openapi()
            pairs = [(model, "validation") for model in REQUESTS]
            _, found = models_json_schema(pairs, ref_template=COMPONENTS)  # type: ignore[arg-type]
            schema["components"]["schemas"] = found["$defs"] | schema["components"]["schemas"]
            self.openapi_schema = schema
        return self.openapi_schema


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["the service"], responses={200: {"model": HealthAnswer}})
    async def health() -> Response:
        """Say that the service is there, and how much there is to do."""
        return JSONResponse(
            {
                "status": "ok",
                "version": __version__,
                "matches": service.hosting.playing,
                "waiting": service.decider.waiting,
            }
        )

    @app.get(
        "/metrics",
        tags=["the service"],
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}},
    )
    async def metrics() -> Response:
        """Give counters as Prometheus reads them."""
        return Response(service.metrics.as_text(), media_type=CONTENT_TYPE)


def _add_page(app: FastAPI) -> None:
    """Serve the files that there are, each at its own path: nothing else is ever looked for."""
    files = StaticFiles(directory=PAGE)

    def add(path: str, name: str) -> None:
        async def page(request: Request) -> Response:
            response = await files.get_response(name, request.scope)
            response.headers["Cache-Control"] = "no-cache"
            return response

        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)

    add("/", INDEX)
    for file in sorted(PAGE.rglob("*")):
        if file.is_file():
            name = file.relative_to(PAGE).as_posix()
            add(f"/{name}", name)
