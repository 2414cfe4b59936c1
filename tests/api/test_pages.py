"""The operations page as files: what is served, and what a browser is told about it."""

from __future__ import annotations

import json
import re
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from nightmail.api.pages import TYPES, page_files
from tests.server.rig import Town

ROOT = Path(__file__).parent.parent.parent
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def test_the_page_needs_no_token_and_every_file_has_a_strict_policy(town: Town) -> None:
    for path in ("/ops", *(f"/ops/{name}" for name in page_files())):
        reply = town.get(path)
        assert reply.status == 200, path
        assert {name: reply.headers[name] for name in HEADERS} == HEADERS
        again = town.ask("GET", path, If_None_Match=reply.headers["etag"])
        assert (again.status, again.body) == (304, b"")
    assert town.get("/ops").headers["content-type"] == "text/html; charset=utf-8"
    assert town.get("/ops/app.js").headers["content-type"] == "text/javascript; charset=utf-8"


def test_the_page_with_a_slash_leads_to_the_page(town: Town) -> None:
    reply = town.get("/ops/")
    assert (reply.status, reply.headers["location"]) == (308, "../ops")


@pytest.mark.parametrize(
    "name",
    ["nothing.js", "../app.py", "%2e%2e/app.py", "..%2f..%2fapi%2fapp.py", "/etc/passwd", "vendor", "types.d.ts"],
)
def test_nothing_else_is_served(town: Town, name: str) -> None:
    assert town.get(f"/ops/{name}").status == 404


def test_the_page_has_nothing_inline_and_asks_nobody_else() -> None:
    html = page_files()["index.html"].content.decode()
    assert re.findall(r"<style|style=|\son\w+=|javascript:|https?://", html) == []
    assert re.findall(r"<script(?![^>]*\ssrc=)", html) == []
    named = re.findall(r'(?:src|href)="ops/([^"]+)"', html)
    assert set(named) <= set(page_files())
    for name, file in page_files().items():
        if name.endswith(".css"):
            assert re.findall(rb"@import|url\(", file.content) == [], name


def test_no_script_of_ours_makes_markup_from_text() -> None:
    sinks = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser|srcdoc")
    found = {
        name: sinks.findall(file.content.decode())
        for name, file in page_files().items()
        if name.endswith(".js") and not name.startswith("vendor/")
    }
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_every_module_that_is_imported_is_there() -> None:
    for name, file in page_files().items():
        if name.endswith(".js") and "/" not in name:
            imported = re.findall(r'^import .*? from "\./([^"]+)"', file.content.decode(), re.MULTILINE)
            assert set(imported) <= set(page_files()), name


def test_what_is_not_ours_has_its_licence_beside_it() -> None:
    vendored = {each.name for each in files("nightmail").joinpath("web", "ops", "vendor").iterdir()}
    assert vendored == {"uPlot.LICENSE.txt", "uPlot.esm.d.ts", "uPlot.esm.js", "uPlot.min.css"}
    assert "MIT" in page_files()["vendor/uPlot.LICENSE.txt"].content.decode()


def test_the_wheel_has_every_file_of_the_page(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        assert {f"nightmail/web/ops/{name}" for name in page_files()} <= set(packed.namelist())


def test_no_file_of_the_page_holds_a_second_idea() -> None:
    lines = {
        name: file.content.count(b"\n") for name, file in page_files().items() if not name.startswith("vendor/")
    }  # fmt: skip
    assert {name: count for name, count in lines.items() if count > 300} == {}


def test_a_problem_and_an_answer_are_kept_by_no_cache(town: Town) -> None:
    ada = town.register("ada")
    for path, auth in (("/v1/devices", ada), ("/v1/devices", None), ("/v1/clock", town.operator), ("/nowhere", None)):
        assert town.get(path, auth).headers["cache-control"] == "no-store"


def test_the_configuration_of_the_type_checker_is_strict_and_not_served() -> None:
    settings = json.loads(files("nightmail").joinpath("web", "tsconfig.json").read_text())
    assert settings["compilerOptions"]["strict"] is True
    assert "json" not in TYPES
