"""The pictures of `docs/studio.md` and `docs/report.md`, made in Chromium.

A studio is started, driven and photographed, and then the report of its run. Run it with the folder
of the documentation: `make pictures`. It needs playwright and Chromium.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PATIENCE = 120_000
DESK, PHONE = {"width": 1120, "height": 760}, {"width": 400, "height": 760}
"""Screens."""
ROOM = 24
"""Pixels above a section that is photographed, beside the header."""


def main(out: Path) -> None:
    """Photograph every screen once."""
    for name in ("studio", "report"):
        (out / name).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        words = [sys.executable, "-m", "hybridsde", "studio", f"{folder}/shown", "--no-open"]
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as studio:
            assert studio.stdout is not None
            address = next(line.strip() for line in studio.stdout if re.match("http://", line))
            story(browser.new_page(viewport=DESK), address, out / "studio")
            dark = browser.new_context(viewport=PHONE, color_scheme="dark").new_page()
            phone(dark, address, out / "studio")
            studio.send_signal(signal.SIGINT)
        run = Path(folder) / "shown" / "predators" / "run-1"
        subprocess.run([sys.executable, "-m", "hybridsde", "report", str(run)], check=True)
        page = (run / "report.html").as_uri()
        report(browser.new_page(viewport=DESK), page, out / "report")
        dark.goto(page)
        dark.wait_for_selector("#chart-forecast .main-svg")
        show(dark, "Forecasts", out / "report" / "phone.png")


def report(page: Page, address: str, out: Path) -> None:
    """Its large charts, each below its heading."""
    page.goto(address)
    page.wait_for_selector("#chart-forecast .main-svg")
    page.select_option("#pick-mode", index=1)
    show(page, "Forecasts", out / "forecasts.png")
    page.locator("#levers input").first.focus()
    page.keyboard.press("End")
    show(page, "What if", out / "whatif.png")
    show(page, "What moves", out / "drift.png")


def story(page: Page, address: str, out: Path) -> None:
    """From an empty page to a forecast."""
    page.goto(address)
    page.wait_for_selector("#example")
    page.screenshot(path=out / "home.png")
    page.click("#example")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    page.wait_for_selector("#chart-look .main-svg")
    page.screenshot(path=out / "recordings.png")
    page.click("text=+ dy/dt")
    page.keyboard.type("gain*x*(y - loss*y")
    page.wait_for_selector(".wrong:has-text('never closed')")
    show(page, "What you know", out / "equations.png")
    page.click("[aria-label='Remove equation 2']")
    page.wait_for_selector("text=+ dy/dt")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    page.click("#fit")
    page.wait_for_selector("#chart-forecast .main-svg", timeout=PATIENCE)
    page.locator(".levers input").last.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#chart-forecast .legendtext:has-text('changed')", timeout=PATIENCE)
    page.wait_for_timeout(600)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=out / "forecast.png")
    page.wait_for_selector("td:has-text('mean-curve')", timeout=PATIENCE)
    show(page, "Scores", out / "scores.png")


def phone(page: Page, address: str, out: Path) -> None:
    """The same run on a small dark screen."""
    page.goto(address)
    page.click("a:text-is('run-1')")
    page.wait_for_selector("#chart-forecast .main-svg", timeout=PATIENCE)
    page.wait_for_timeout(600)
    page.screenshot(path=out / "phone.png")


def show(page: Page, title: str, path: Path) -> None:
    """The screen with a section at its top."""
    place = page.locator(f"h2:has-text('{title}')").bounding_box()
    header = page.locator("header")
    above = header.bounding_box() if header.count() else {"height": 0}
    assert place is not None
    assert above is not None
    page.evaluate(f"scrollBy(0, {place['y'] - above['height'] - ROOM})")
    page.wait_for_timeout(300)
    page.screenshot(path=path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
