"""The description of the API, made from the routes and the models of what they ask and answer."""

from __future__ import annotations

from inspect import getdoc
from typing import TYPE_CHECKING, Any, Literal

from pydantic.json_schema import models_json_schema

from timeline.inspector.asked import AskedDecision, AskedFile, AskedLab
from timeline.inspector.routes import ROUTES
from timeline.inspector.shapes import Decided, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

    from timeline.inspector.routes import Route

_PROBLEMS = {"4XX": "The request cannot be answered as it is; the problem says why, and the cure."}


def openapi() -> dict[str, Any]:
    """Return the description in the form of OpenAPI 3.1."""
    shapes: list[type[BaseModel]] = [*(route.answers for route in ROUTES), AskedDecision, Decided, Problem]
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
        "paths": {f"/{route.path}": {"get": _operation(route)} for route in ROUTES}
        | _live()
        | _file()
        | _lab_page()
        | _decisions(),
        "components": {"schemas": found["$defs"]},
    }


def _live() -> dict[str, Any]:
    """Describe what `timeline.inspector.stream` answers: its events have names and payloads of their own."""
    id_ = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    behind = {"name": "after", "in": "query", "required": False, "schema": {"type": "string"}}
    stream = {"200": {"description": "Server-sent events.", "content": {"text/event-stream": {}}}}
    now = {"200": {"description": "The answer.", "content": {"application/json": {}}}}
    words = "Stream what happens to a conversation's context, after Last-Event-ID or ``after``."
    return {
        "/v1/conversations/{id}/events": {
            "get": {"operationId": "events", "summary": words, "parameters": [id_, behind], "responses": stream}
        },
        "/v1/conversations/{id}/status": {
            "get": {
                "operationId": "status",
                "summary": "Answer how a conversation's context is now.",
                "parameters": [id_],
                "responses": now,
            }
        },
    }


def _file() -> dict[str, Any]:
    """Describe a conversation as a file."""
    given = [
        {"name": name, "in": "path" if name == "id" else "query", "required": name == "id", "schema": schema}
        for name, schema in AskedFile.model_json_schema()["properties"].items()
    ]
    kinds: dict[str, Any] = {"text/html": {}, "application/jsonl": {}, "application/json": {}, "application/zip": {}}
    responses = {**_responses("Problem"), "200": {"description": "The file.", "content": kinds}}
    words = "Answer a conversation as a file: one HTML page, its log, a trajectory, or a bug bundle."
    operation = {"operationId": "file", "summary": words, "parameters": given, "responses": responses}
    return {"/v1/conversations/{id}/file": {"get": operation}}


def _lab_page() -> dict[str, Any]:
    """Describe the page of a comparison."""
    lab = next(route for route in ROUTES if route.asks is AskedLab)
    page = {"200": {"description": "The page.", "content": {"text/html": {}}}}
    words = "Answer the page of a comparison of policies that has ended."
    responses = {**_responses("Problem"), **page}
    operation = {"operationId": "lab_page", "summary": words, "parameters": [*_parameters(lab)], "responses": responses}
    return {"/v1/conversations/{id}/lab-page": {"get": operation}}


def _decisions() -> dict[str, Any]:
    """Describe how a decision is taken, where that is allowed."""
    id_ = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    header = {"name": "X-Timeline-Decision", "in": "header", "required": True, "schema": {"type": "string"}}
    operation = {
        "operationId": "decide",
        "summary": "Take a decision about a conversation, and return what it changed.",
        "parameters": [id_, header],
        "requestBody": {"required": True, **_content("The decision.", "application/json", "AskedDecision")},
        "responses": _responses("Decided"),
    }
    return {"/v1/conversations/{id}/decisions": {"post": operation}}


def _operation(route: Route) -> dict[str, Any]:
    description = (getdoc(route.read) or "").partition("\n\nRaises:")[0].strip()
    return {
        "operationId": route.read.__name__,
        "summary": description.partition("\n")[0],
        "parameters": list(_parameters(route)),
        "responses": _responses(route.answers.__name__),
    }


def _responses(model: str) -> dict[str, Any]:
    return {
        "200": _content("The answer.", "application/json", model),
        **{status: _content(words, "application/problem+json", "Problem") for status, words in _PROBLEMS.items()},
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
