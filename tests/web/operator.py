"""Somebody at the operations page, and what their browser saw."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.server.rig import Town

SETTINGS: dict[str, Any] = {
    "http__registrations_per_minute": 0,
    "schedule__webhooks": "accounts",
    "schedule__private_networks": "127.0.0.1",
}

WATCH_POLICY = """
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


class Operator:
    def __init__(self, page: Page, town: Town) -> None:
        self.page, self.town = page, town
        self.url = f"http://127.0.0.1:{town.port}"
        self.strange_requests: list[str] = []
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.add_init_script(WATCH_POLICY)
        page.on("request", lambda request: self._asked(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _asked(self, url: str) -> None:
        self.requests.append(url)
        if not url.startswith(self.url + "/"):
            self.strange_requests.append(url)

    @property
    def token(self) -> str:
        return self.town.operator.removeprefix("Bearer operator.")

    def sign_in(self) -> None:
        self.page.goto(f"{self.url}/ops")
        self.page.get_by_label("Operator's token").fill(self.token)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("navigation", name="Views")).to_be_visible()

    def violations(self) -> list[str]:
        return self.page.evaluate("window.violations")

    def go(self, tab: str) -> None:
        self.page.get_by_role("navigation", name="Views").get_by_role("link", name=tab).click()

    def overflow(self) -> int:
        """By how many pixels the page is wider than the screen."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
