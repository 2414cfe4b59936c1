"""The system's own Chromium, driven by Playwright. No browser is ever downloaded.

Knows:   where distributions put it; `make browser` installs it.
Touches: one browser process, which ends with the `with` block.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
NO_BROWSER = "there is no Chromium; on Debian or Ubuntu: sudo apt-get install chromium"


def browser_path() -> str:
    """Empty: there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


@contextmanager
def browsing() -> Generator[Browser]:
    """Without a window. Raises FileNotFoundError if there is no browser."""
    if not (path := browser_path()):
        raise FileNotFoundError(NO_BROWSER)
    # Chromium's sandbox does not run as root; what is shown is our own page.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*flags, "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()
