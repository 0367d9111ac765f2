"""The studio in a real browser: the whole story, from an empty page to a report to take away.

Nobody is asked but the studio, and axe finds no serious fault. Pictures are kept where
HYBRIDSDE_PICTURES names a folder.
"""

import io
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest
from chromium import CHROMIUM, faults, keep, launched, watched

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path"),
]
LONGEST = 180.0
"""Seconds from an empty browser to a forecast."""
PATIENCE = 90_000
"""Milliseconds for a fit or a report."""


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """Address and folder of a studio that runs as a user starts it."""
    folder = tmp_path_factory.mktemp("studio") / "work"
    words = [sys.executable, "-m", "hybridsde", "studio", str(folder), "--no-open"]
    kept = {**os.environ, "HYBRIDSDE_CACHE": str(folder.parent / "cache")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=kept) as process:
        assert process.stdout is not None
        address = next(line.strip() for line in process.stdout if line.startswith("http://"))
        yield address, folder
        process.send_signal(signal.SIGINT)
        process.wait(60)


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture
def opened(browser, studio):
    wrong, pages = [], []
    here = studio[0].rsplit("/", 2)[0]

    def open_page(place: str = "", width: int = 1200, dark: bool = False):
        page = watched(browser, (here, "data:", "blob:"), wrong, width, dark)
        pages.append(page)
        page.goto(studio[0] + place)
        return page

    yield open_page
    for page in pages:
        page.context.close()
    assert not wrong


@pytest.fixture
def report(browser, studio):
    """Opens the report that the story wrote, from its file; it asks nobody."""
    wrong, pages = [], []

    def open_report(width: int = 1200, dark: bool = False):
        page = watched(browser, ("file:", "data:", "blob:"), wrong, width, dark)
        pages.append(page)
        page.goto((studio[1] / "predators" / "run-1" / "report.html").as_uri())
        page.wait_for_selector("#chart-forecast .main-svg")
        return page

    yield open_report
    for page in pages:
        page.context.close()
    assert not wrong


def taken(page, name: str) -> bytes:
    """A file from the last section."""
    with page.expect_download(timeout=PATIENCE) as found:
        page.click(f".take a:has-text('{name}')")
    return found.value.path().read_bytes()


def test_from_an_empty_page_to_a_report(studio, opened):
    began, folder = time.monotonic(), studio[1]
    page = opened()
    page.wait_for_selector("text=Drop a table here")
    keep(page, "studio-home")
    assert not faults(page)
    page.click("text=Try the example")
    page.wait_for_selector("#chart-look .main-svg")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    assert "dy/dt = learned" in page.inner_text("#check")
    keep(page, "studio-project")
    assert not faults(page)
    page.click("#fit")
    page.wait_for_selector("#chart-loss .main-svg", timeout=PATIENCE)
    keep(page, "studio-fitting")
    assert not faults(page)
    page.wait_for_selector("#chart-forecast .main-svg", timeout=PATIENCE)
    assert time.monotonic() - began < LONGEST
    assert "Training never saw this recording" in page.inner_text("#forecast-said")

    before = page.inner_text("#forecast-said")
    page.focus("#origin")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#forecast-said") != before
    page.locator(".levers input").first.focus()
    page.keyboard.press("End")
    page.wait_for_selector("#chart-forecast .legendtext:has-text('changed')")
    page.wait_for_selector("td:has-text('mean-curve')", timeout=PATIENCE)
    assert (
        page.locator("section:has-text('Scores') tbody tr")
        .first.inner_text()
        .startswith("this run")
    )
    page.click("#discover")
    page.wait_for_selector("pre:has-text('dy = -3.8')", timeout=PATIENCE)
    page.click("#certify")
    page.wait_for_selector(".certificate .main-svg", timeout=PATIENCE)
    keep(page, "studio-run")
    assert not faults(page)

    page.click("#report")
    frame = page.frame_locator("iframe.report")
    frame.locator("#chart-forecast .main-svg").first.wait_for(timeout=PATIENCE)
    assert b"<title>" in taken(page, "Report")
    assert b"[physics]" in taken(page, "Settings")
    with zipfile.ZipFile(io.BytesIO(taken(page, "Run folder"))) as archive:
        assert "run-1/weights.safetensors" in archive.namelist()
    script = taken(page, "Python")
    compile(script, "fit.py", "exec")
    assert (folder / "predators" / "run-1" / "report.html").exists()

    page.click("text=Take them over as known physics")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    assert page.locator(".equation").count() == 2
    assert "Nothing" in page.inner_text("#check") or "learned" in page.inner_text("#check")


@pytest.mark.parametrize(("width", "dark"), [(1200, True), (400, False), (400, True)])
def test_it_fits_every_screen(opened, width, dark):
    shade = f"{width}-{'dark' if dark else 'light'}"
    page = opened(width=width, dark=dark)
    page.wait_for_selector(".project")
    keep(page, f"studio-home-{shade}")
    page.click("a:text-is('settings.toml')")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    page.wait_for_selector("#chart-look .main-svg")
    keep(page, f"studio-project-{shade}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not faults(page)
    page.click("text=Home")
    page.click("a:text-is('run-1')")
    page.wait_for_selector("#chart-forecast .main-svg", timeout=PATIENCE)
    keep(page, f"studio-run-{shade}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not faults(page)


def test_equations_answer_while_they_are_typed(opened):
    page = opened()
    page.click("a:text-is('settings.toml')")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    page.click("text=+ dy/dt")
    page.keyboard.type("gain*(x*y")
    page.wait_for_selector(".wrong:has-text('never closed')")
    caret = page.locator(".caret").last.text_content()
    assert caret == " " * len("dy = gain*") + "^"
    keep(page, "studio-wrong")
    assert page.locator("#fit").is_disabled()
    page.keyboard.type(")")
    page.wait_for_selector("td:has-text('gain')")
    assert page.locator(".equation math").count() == 2
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    page.click("[aria-label='Remove equation 2']")
    page.wait_for_selector("text=+ dy/dt")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)


def test_a_dropped_table_is_mapped(opened, studio):
    page = opened()
    rows = "\n".join(f"{run},{k},{k * 0.5},{k % 3}" for run in "abcdef" for k in range(12))
    table = f"who,hour,level,valve\n{rows}\n".encode()
    page.set_input_files(
        "#file", {"name": "../My tank.csv", "mimeType": "text/csv", "buffer": table}
    )
    page.wait_for_selector("#chart-look .main-svg")
    assert (studio[1] / "my-tank" / "recordings.csv").read_bytes() == table
    page.select_option("[aria-label='valve is']", "input")
    page.wait_for_selector(".card:has-text('1input'), .card:has-text('1 input')")
    page.wait_for_selector("#fit-said:not(:has(.spin))", timeout=PATIENCE)
    assert 'inputs = [\n    "valve",\n]' in (studio[1] / "my-tank" / "settings.toml").read_text()


def test_words_among_numbers_are_read_as_missing(opened, studio):
    page = opened()
    rows = "\n".join(f"{k},{'oops' if k == 7 else (k * 7) % 5}" for k in range(30))
    table = f"t,level\n{rows}\n".encode()
    page.set_input_files("#file", {"name": "bad.csv", "mimeType": "text/csv", "buffer": table})
    page.wait_for_selector("#chart-look .main-svg", timeout=PATIENCE)
    assert 'Cells that say "oops" are read as missing' in page.inner_text("main")
    field = page.get_by_label("cells that mean missing")
    assert field.input_value() == "oops"
    field.fill("")
    field.press("Tab")
    page.wait_for_selector("td:has-text('oops')", timeout=PATIENCE)
    assert "9\tlevel\toops" in page.inner_text("table")
    page.click("#blank")
    page.wait_for_selector("#chart-look .main-svg", timeout=PATIENCE)
    assert b"oops" in (studio[1] / "bad" / "recordings.csv").read_bytes()


def test_a_long_message_leaves_its_button_whole(opened):
    page = opened(width=420)
    page.wait_for_selector("text=Drop a table here")
    say = "(words) => import('./assets/parts.js').then((parts) => parts.complain(words))"
    page.evaluate(say, "runs.csv, line 3: 5 cells, but the header names 2 columns. " * 4)
    close = page.locator("#said button")
    close.wait_for()
    box, least = close.bounding_box(), close.evaluate("(one) => one.scrollWidth")
    assert box is not None
    assert box["width"] >= least
    assert box["height"] < 60
    keep(page, "studio-message")


def test_values_that_stick_out_are_emptied_in_the_copy(opened, studio):
    page = opened()
    rows = "\n".join(f"{k},{90 if k == 17 else k % 5 + k / 7:.3f}" for k in range(60))
    table = f"t,level\n{rows}\n".encode()
    page.set_input_files("#file", {"name": "peak.csv", "mimeType": "text/csv", "buffer": table})
    page.wait_for_selector("#chart-look .main-svg", timeout=PATIENCE)
    assert "empty this cell: line 19." in page.inner_text("main")
    page.click("text=Empty this cell")
    page.wait_for_selector("text=sticks out from", state="detached", timeout=PATIENCE)
    assert b"\n17,\n" in (studio[1] / "peak" / "recordings.csv").read_bytes()


def test_runs_side_by_side(opened, studio):
    folder = studio[1] / "predators"
    shutil.copytree(folder / "run-1", folder / "copied")
    page = opened()
    page.check("[aria-label='Compare predators/run-1']")
    page.check("[aria-label='Compare predators/copied']")
    page.click("#compare")
    page.wait_for_selector("#chart-compare .main-svg", timeout=PATIENCE)
    keep(page, "studio-compare")
    scores = page.locator("section:has-text('Scores') tbody tr").all_inner_texts()
    assert len({row.split("\t", 1)[1] for row in scores}) == 1
    assert not faults(page)


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (420, True)])
def test_the_report_answers(report, width, dark):
    page = report(width, dark)
    keep(page, f"report-{width}-{'dark' if dark else 'light'}")
    said = page.locator("#forecast-said")
    before = said.inner_text()
    page.select_option("#pick-state", label="y")
    assert ", y." in said.inner_text() != before
    page.select_option("#pick-mode", index=1)
    assert page.locator("#origin-label").is_visible()
    given = page.locator("#origin-value").inner_text()
    page.focus("#pick-origin")
    page.keyboard.press("Home")
    assert page.locator("#origin-value").inner_text() != given
    assert page.locator("#whatif-said").inner_text() == "Nothing is changed yet."
    slider = page.locator("#levers input").last
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert "instead of" in page.locator("#whatif-said").inner_text()
    keep(page, f"report-changed-{width}-{'dark' if dark else 'light'}")
    assert page.locator("#forecast-table tr").count() > 3
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, "the page is wider than the screen"
    assert not faults(page)


def test_the_report_can_be_printed(report, tmp_path):
    page = report()
    page.emulate_media(media="print")
    assert not page.locator(".controls").first.is_visible()
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000


@pytest.mark.long
def test_networks_are_watched_stopped_and_resumed(opened, studio):
    page = opened()
    page.click("a:text-is('settings.toml') >> nth=-1")
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    page.click("text=More choices")
    page.select_option("label:has-text('the learned part is') select", "network")
    page.wait_for_selector("#check:has-text('networks')", timeout=PATIENCE)
    page.wait_for_selector("#fit:enabled", timeout=PATIENCE)
    page.click("#fit")
    page.wait_for_selector("#chart-glimpse .main-svg", timeout=PATIENCE)
    keep(page, "studio-glimpse")
    page.click("#stop")
    page.wait_for_selector("#resume", timeout=PATIENCE)
    assert list(studio[1].glob("*/run-*/unfinished"))
    page.click("#resume")
    page.wait_for_selector("#fit-stage:has-text('step')", timeout=PATIENCE)
    page.click("#stop")
    page.wait_for_selector("#resume", timeout=PATIENCE)
