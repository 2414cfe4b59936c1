"""What an open operations page costs the server: CPU time of its process, on each tab, in a real browser.

    python -m bench.ops_page
    python -m bench.ops_page --letters 1000 --seconds 20

A table for people on standard error; the last line on standard output is JSON. The server has `--letters` dead letters
and a week of history; nobody else uses it. What it costs without a page is measured first and taken off. Beside it, how
long the browser takes to show a view, which depends on the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from pictures.browser import browsing
from pictures.ops import PEOPLE, refusing_webhook, schedule_calls, signed_in

from .ops_server import ServedWeek, serving_a_week

SETTLE_S = 30
"""After the letters: checkpoints, and what they leave behind."""
VIEWS = {"overview": "#/overview", "week": "#/overview/7d", "letters": "#/letters", "schedules": "#/schedules",
         "storage": "#/storage"}  # fmt: skip
SHOWN = {"overview": ".chart canvas", "week": ".chart canvas", "letters": ".list tbody tr",
         "schedules": ".list tbody tr", "storage": ".storage section"}  # fmt: skip


def cpu_s(pid: int) -> float:
    """Of all its threads."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def core_percent(pid: int, page: Page, seconds: float) -> float:
    """CPU time of the process in this time, as a share of one core."""
    before, began = cpu_s(pid), time.monotonic()
    page.wait_for_timeout(seconds * 1000)
    return 100 * (cpu_s(pid) - before) / (time.monotonic() - began)


def ask(server: ServedWeek, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer operator.{server.operator_token}", "Content-Type": "application/json"}
    request = urllib.request.Request(server.url + path, json.dumps(body).encode() if body else None, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def prepare(server: ServedWeek, letters: int) -> None:
    ask(server, "/v1/accounts", {
        "handle": PEOPLE[0], "label": "phone", "platform": "cli", "registration": 1, "token_digest": "00" * 32,
    })  # fmt: skip
    with refusing_webhook() as receiver:
        schedule_calls(server, receiver, letters)
        while (total := ask(server, "/v1/dead-letters/classes")["total"]) < letters:
            print(f"{total} of {letters} dead letters", file=sys.stderr)
            time.sleep(1)


def measure(server: ServedWeek, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with browsing() as browser:
        blank = browser.new_page()
        blank.wait_for_timeout(SETTLE_S * 1000)
        found["idle_percent"] = round(core_percent(server.pid, blank, seconds), 2)
        page = signed_in(browser, server, viewport={"width": 1280, "height": 850})
        for view, address in VIEWS.items():
            page.goto(f"{server.url}/ops#/trace")
            page.wait_for_selector("#trace-id")
            began = time.monotonic()
            page.evaluate("(hash) => { location.hash = hash; }", address)
            page.wait_for_selector(SHOWN[view])
            shown_ms = round(1000 * (time.monotonic() - began))
            used = core_percent(server.pid, page, seconds) - found["idle_percent"]
            found[view] = {
                "core_percent": round(used, 2), "shown_ms": shown_ms,
                "elements": page.evaluate("document.querySelectorAll('*').length"),
            }  # fmt: skip
            print(f"{view:10} {used:6.2f} % of a core, shown after {shown_ms} ms", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60, help="how long each view is open")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving_a_week(Path(folder)) as server:
        prepare(server, given.letters)
        print(json.dumps({"dead_letters": given.letters, "seconds": given.seconds, **measure(server, given.seconds)}))


if __name__ == "__main__":
    main()
