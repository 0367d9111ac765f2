"""A browser for the tests: Chromium from the path, watched for what it asks and complains about."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
SERIOUS = ("serious", "critical")


@contextmanager
def launched():
    """A browser of its own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield found
        found.close()


def watched(browser, own, wrong: list[str], width: int = 1200, dark: bool = False):
    """A page whose requests beyond `own`, and whose errors, are put into `wrong`."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.on("request", lambda one: None if one.url.startswith(own) else wrong.append(one.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    return page


def keep(page, name: str) -> None:
    """A picture, where HYBRIDSDE_PICTURES names a folder for them."""
    folder = os.environ.get("HYBRIDSDE_PICTURES")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def faults(page) -> list[str]:
    """Serious faults that axe finds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']}" for one in found if one["impact"] in SERIOUS]
