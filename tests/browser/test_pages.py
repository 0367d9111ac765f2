"""The pages in a real browser: what they show, what they answer, and that they ask nobody.

Chromium is looked for on the path. Pictures are kept where HYBRIDSDE_PICTURES names a folder.
"""

from pathlib import Path

import pandas as pd
import pytest
from chromium import CHROMIUM, faults, keep, launched, watched

import hybridsde as hs
from helpers import wiggles
from hybridsde.project.look import look
from hybridsde.report.look import write_look

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path"),
]
OWN = ("file:", "data:", "blob:")


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


def write_table(path: Path, data: hs.Trajectories, outlier: bool = False) -> None:
    rows = [
        {
            "id": data.ids[n],
            "t": data.times[n, k],
            **dict(zip(data.states, data.values[n, k], strict=True)),
        }
        for n in range(len(data))
        for k in range(int(data.lengths[n]))
    ]
    rows[5]["x"] += 50 * outlier
    pd.DataFrame(rows).to_csv(path, index=False)


@pytest.fixture(scope="module")
def first_look(tmp_path_factory):
    folder = tmp_path_factory.mktemp("look")
    write_table(folder / "mine.csv", wiggles(series=4), outlier=True)
    return write_look(look(folder / "mine.csv"), folder / "look.html")


@pytest.fixture
def opened(browser):
    """Opens a page and watches what it asks for and complains about."""
    pages, wrong = [], []

    def open_page(path: Path, width: int = 1200, dark: bool = False):
        page = watched(browser, OWN, wrong, width, dark)
        pages.append(page)
        page.goto(path.as_uri())
        page.wait_for_selector(".main-svg")
        return page

    yield open_page
    for page in pages:
        page.context.close()
    assert not wrong


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (420, True)])
def test_a_first_look(first_look, opened, width, dark):
    page = opened(first_look, width, dark=dark)
    keep(page, f"look-{width}-{'dark' if dark else 'light'}")
    assert "1 value sticks out from the neighbours" in page.inner_text("main")
    assert page.locator("svg a").count() == 0, "a name became a link"
    page.select_option("#pick-series", index=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not faults(page)
