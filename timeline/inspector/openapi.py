"""The description of the API, made from the routes and the models of what they ask and answer."""

from __future__ import annotations

from inspect import getdoc
from typing import TYPE_CHECKING, Any, Literal

from pydantic.json_schema import models_json_schema

from timeline.inspector.routes import ROUTES
from timeline.inspector.shapes import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

    from timeline.inspector.routes import Route

_PROBLEMS = {"4XX": "The request cannot be answered as it is; the problem says why, and the cure."}


def openapi() -> dict[str, Any]:
    """Return the description in the form of OpenAPI 3.1."""
    shapes: list[type[BaseModel]] = [*(route.answers for route in ROUTES), Problem]
    models: list[tuple[type[BaseModel], Literal["serialization"]]] = [
        (model, "serialization") for model in dict.fromkeys(shapes)
    ]
    _, found = models_json_schema(models, ref_template="#/components/schemas/{model}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "timeline inspector",
            "version": "1",
            "description": "What models saw in recorded conversations, and why.",
        },
        "servers": [{"url": "./", "description": "Paths are relative to where the application is mounted."}],
        "paths": {f"/{route.path}": {"get": _operation(route)} for route in ROUTES},
        "components": {"schemas": found["$defs"]},
    }


def _operation(route: Route) -> dict[str, Any]:
    said = (getdoc(route.read) or "").partition("\n\nRaises:")[0].strip()
    return {
        "operationId": route.read.__name__,
        "summary": said.partition("\n")[0],
        "parameters": list(_parameters(route)),
        "responses": {
            "200": _content("The answer.", "application/json", route.answers.__name__),
            **{status: _content(words, "application/problem+json", "Problem") for status, words in _PROBLEMS.items()},
        },
    }


def _content(words: str, kind: str, model: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model}"}
    return {"description": words, "content": {kind: {"schema": schema}}}


def _parameters(route: Route) -> Iterable[dict[str, Any]]:
    schema = route.asks.model_json_schema()
    for name, described in schema.get("properties", {}).items():
        within = "path" if f"{{{name}}}" in route.path else "query"
        plain = {key: value for key, value in described.items() if key != "title"}
        yield {"name": name, "in": within, "required": within == "path", "schema": plain}
