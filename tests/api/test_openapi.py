"""The description is of what is there, and what is there is as described."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from nightmail.api import schemas
from tests.server.rig import Reply, Town, new_device


@pytest.fixture(scope="module")
def described(town: Town) -> dict[str, Any]:
    return town.get("/openapi.json").json


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_route_that_is_served_is_described(town: Town, described: dict[str, Any]) -> None:
    application = town.node.listener.app
    served = {re.sub(r"{(\w+):\w+}", r"{\1}", route.path) for route in application.routes}  # type: ignore[attr-defined]
    assert served == set(described["paths"])


def test_every_operation_that_is_described_is_served(town: Town, described: dict[str, Any]) -> None:
    for method, path, operation in operations(described):
        filled = re.sub(r"{\w+}", "x", path)
        reply = town.ask(method.upper(), filled)
        assert reply.status != 405, (method, path)
        assert str(reply.status) in operation["responses"], (method, path, reply)
        secured = bool(operation["security"])
        assert (reply.status == 401) == secured, (method, path)


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    text = msgspec.json.encode(described).decode()
    named = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert named == set(described["components"]["schemas"])


def check(described: dict[str, Any], method: str, path: str, reply: Reply) -> None:
    """A response is what the description says: its status, its media type, its shape."""
    told = described["paths"][path][method]["responses"][str(reply.status)]
    media = reply.headers["Content-Type"].partition(";")[0]
    assert media in told["content"]
    name = told["content"][media]["schema"]["$ref"].rpartition("/")[2]
    kind = getattr(schemas, name)
    strict = msgspec.defstruct(
        name, [(f.name, f.type) for f in msgspec.structs.fields(kind)], forbid_unknown_fields=True
    )
    msgspec.json.decode(reply.body, type=kind if name == "ProblemSeen" else strict if not _has_defaults(kind) else kind)


def _has_defaults(kind: type[msgspec.Struct]) -> bool:
    return any(not field.required for field in msgspec.structs.fields(kind))


def test_responses_match_their_description(town: Town, described: dict[str, Any]) -> None:
    made = town.ask("POST", "/v1/accounts", new_device(b"t", handle="match"))
    check(described, "post", "/v1/accounts", made)
    match = town.register("matching")
    check(described, "post", "/v1/accounts", town.ask("POST", "/v1/accounts", new_device(b"u", handle="match")))
    check(described, "post", "/v1/accounts", town.ask("POST", "/v1/accounts", b"{"))
    check(described, "get", "/v1/accounts/{handle}", town.get("/v1/accounts/match", match))
    check(described, "get", "/v1/accounts/{handle}", town.get("/v1/accounts/nobody", match))
    check(described, "get", "/v1/devices", town.get("/v1/devices", match))
    check(described, "post", "/v1/devices", town.ask("POST", "/v1/devices", new_device(b"v"), auth=match))
    check(described, "get", "/healthz", town.get("/healthz"))
    check(described, "get", "/readyz", town.get("/readyz"))


def test_the_first_page_tells_what_to_try(town: Town) -> None:
    page = town.get("/")
    assert page.status == 200
    for path in re.findall(r"curl \S+?(/[\w./]+)  ", page.body.decode()):
        assert town.get(path, town.operator if path == "/metrics" else None).status == 200
