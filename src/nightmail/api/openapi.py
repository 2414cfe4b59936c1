"""/openapi.json, from the table of routes and the schemas of what they take and give."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .problems import KINDS, MEDIA_TYPE, STATUSES
from .route import ApiRoute
from .schemas import Health, ProblemSeen

REF = "#/components/schemas/{name}"

EVERYWHERE = ("unavailable", "internal")
WITH_BODY = ("malformed", "too_large", "too_slow", "unsupported_media_type")
NOTHING_SAID = 200
"""The status of a route that names none; without content it is 204."""
WRITING = ("overloaded", "disk_full", "dead_lettered")

STATUS_OF_CODE = {kind.word: status for kind, status in STATUSES.items()} | {
    code: kind.status for code, kind in KINDS.items()
}


def describe(routes: list[ApiRoute], version: str) -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    kinds = {kind for route in routes for kind in (route.takes, route.gives) if kind} | {Health, ProblemSeen}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_path(route.path), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Nightmail",
            "version": version,
            "description": "Accounts, devices and the state of messages. Messages themselves travel over "
            "the WebSocket at /v1/connect; see docs/protocol.md.",
        },
        "paths": paths | _plain_paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "device": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "<device id, hex>.<token, base64url without padding>",
                },
                "operator": {"type": "http", "scheme": "bearer", "description": "operator.<operator's token>"},
            },
        },
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.handler.__name__ + "_alias" * route.is_alias,
        "security": [] if route.who == "anyone" else [{who: []} for who in route.who.split("/")],
    }
    places = [("path", name) for name in re.findall(r"{(\w+)", route.path)]
    places += [("query", name) for name in route.query] + [("header", name) for name in route.headers]
    if places:
        operation["parameters"] = [
            {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
            for place, name in places
        ]
    if route.takes:
        operation["requestBody"] = {"required": True, "content": {"application/json": _ref(route.takes)}}
    good: dict[str, Any] = {"description": "Done" if route.gives is None else route.summary}
    if route.gives:
        good["content"] = {"application/json": _ref(route.gives)}
    if route.media:
        good["content"] = {route.media: {"schema": {"type": "string", "format": "binary"}}}
    status = 204 if route.gives is None and route.status == NOTHING_SAID and not route.media else route.status
    operation["responses"] = {str(status): good} | _problems(route)
    return operation


def _problems(route: ApiRoute) -> dict[str, Any]:
    codes = {*EVERYWHERE, *route.problems}
    if route.takes:
        codes |= set(WITH_BODY)
    if "{" in route.path or route.query:
        codes.add("malformed")
    if route.method != "GET":
        codes |= set(WRITING)
    if route.who != "anyone":
        codes.add("unauthorized")
    statuses: dict[str, list[str]] = {}
    for code in sorted(codes):
        statuses.setdefault(str(STATUS_OF_CODE[code]), []).append(code)
    return {
        status: {"description": ", ".join(found), "content": {MEDIA_TYPE: _ref(ProblemSeen)}}
        for status, found in sorted(statuses.items())
    }


def _plain_paths() -> dict[str, Any]:
    def get(summary: str, media: str, schema: dict[str, Any], *statuses: str) -> dict[str, Any]:
        responses: dict[str, Any] = {"200": {"description": summary, "content": {media: schema}}}
        for status in statuses:
            responses[status] = {"description": "not_ready", "content": {MEDIA_TYPE: _ref(ProblemSeen)}}
        return {"get": {"summary": summary, "security": [], "responses": responses}}

    def metrics() -> dict[str, Any]:
        described = get("Prometheus metrics", "text/plain", text)
        described["get"]["security"] = [{"operator": []}]
        problem = {"description": "unauthorized", "content": {MEDIA_TYPE: _ref(ProblemSeen)}}
        described["get"]["responses"]["401"] = problem
        return described

    def page_file() -> dict[str, Any]:
        described = get("A file of the operations page", "text/javascript", text)
        named = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        described["get"]["parameters"] = [named]
        missing = {"description": "not_found", "content": {MEDIA_TYPE: _ref(ProblemSeen)}}
        described["get"]["responses"]["404"] = missing
        return described

    text = {"schema": {"type": "string"}}
    return {
        "/": get("What this is, and what to try", "text/plain", text),
        "/healthz": get("Is the process alive?", "application/json", _ref(Health)),
        "/readyz": get("Does it take messages?", "application/json", _ref(Health), "503"),
        "/metrics": metrics(),
        "/ops": get("The operations page", "text/html", text),
        "/ops/{name}": page_file(),
        "/openapi.json": get("This document", "application/json", {"schema": {"type": "object"}}),
    }


def _path(path: str) -> str:
    return re.sub(r"{(\w+):\w+}", r"{\1}", path)


def _ref(kind: type) -> dict[str, Any]:
    return {"schema": {"$ref": REF.format(name=kind.__name__)}}
