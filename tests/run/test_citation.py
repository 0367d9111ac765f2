"""What to cite, and how results look in a notebook."""

import re
from dataclasses import replace

import pytest

import hybridsde as hs
from helpers import tiny_model, untrained_run, wiggles
from hybridsde.baselines import NpODE, Persistence
from hybridsde.run.citation import ENTRIES, OTHERS
from hybridsde.store.metadata import Scores


def keys(run):
    return re.findall(r"@\w+{(\w+),", hs.cite(run))


def test_a_run_names_the_papers_of_its_parts():
    assert keys(untrained_run()) == ["haussmann2021", "gneiting2007", "sarkka2019"]
    library = replace(untrained_run(), spec=tiny_model(learned="library"))
    assert keys(library)[-2:] == ["mackay1992", "george1997"]
    other = replace(untrained_run(), spec=NpODE(observed=("x", "y")))
    assert keys(other)[0] == "heinonen2018"
    assert keys(replace(untrained_run(), spec=Persistence(observed=("x",))))[0] == "haussmann2021"


def test_every_other_system_exists_and_every_entry_is_whole():
    for name, key in OTHERS.items():
        assert hasattr(hs.baselines, name)
        assert key in ENTRIES
    for key, entry in ENTRIES.items():
        assert entry.startswith("@")
        assert f"{{{key}," in entry
        assert entry.count("{") == entry.count("}")
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) +=", entry, re.M))


def test_results_introduce_themselves():
    run = untrained_run()
    scores = Scores({"crps": 0.25}, {"x": {"crps": 0.25}})
    run = replace(run, metadata=replace(run.metadata, test_scores=scores, choice="a < b"))
    assert repr(run) == "<Run: hybrid of x, y, CRPS 0.25 on held-out trajectories>"
    assert "a &lt; b" in run._repr_html_()
    forecast = run.forecast(wiggles(series=2).start(), elapsed=[0.1, 0.2], draws=4)
    assert repr(forecast) == "<Forecast of x, y: 4 draws of 2 trajectories at 2 times>"
    assert "<table" in forecast._repr_html_()


def test_a_certificate_introduces_itself():
    found = hs.Certificate(
        0.5,
        "hold-out",
        "error",
        0.05,
        9,
        False,
        "At most < 0.5.",
        ("nobody looked",),
        {"a": 1.0},
        {},
    )
    html = found._repr_html_()
    assert "At most &lt; 0.5." in html
    assert "nobody looked" in html


@pytest.mark.parametrize("field", ["cff-version", "title", "references"])
def test_the_citation_file_has_what_it_needs(field, request):
    text = (request.config.rootpath / "CITATION.cff").read_text()
    assert f"\n{field}:" in f"\n{text}"
    assert f"version: {hs.__version__}" in text
