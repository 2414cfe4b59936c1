"""A real server, a real browser, and the operations page between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from pictures.browser import NO_BROWSER, browser_path, browsing
from tests.server.rig import Town, serving
from tests.web.operator import SETTINGS, Operator

WAIT_MS = 120_000
"""No test waits this long unless something hangs."""

expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not browser_path():
        pytest.skip(f"the operations page is not tried in a browser: {NO_BROWSER}")
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with serving(tmp_path_factory.mktemp("node"), **SETTINGS) as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of its own context, which has nothing kept."""
    context = browser.new_context(viewport={"width": 1280, "height": 850}, color_scheme="light")
    context.set_default_timeout(WAIT_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def operator(page: Page, town: Town) -> Iterator[Operator]:
    """Signed in. At the end nothing has broken a rule of the page's policy, or left the server's own origin."""
    made = Operator(page, town)
    made.sign_in()
    yield made
    assert made.violations() == []
    assert made.strange_requests == []
    assert made.errors == []
