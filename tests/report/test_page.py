"""The report page of runs of every kind, from folders that nothing was trained for."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import hybridsde as hs
from helpers import tiny_model, untrained_run, wiggles
from hybridsde.project.project import DATA
from hybridsde.project.split import Split
from hybridsde.report.page import write_page


class Names(HTMLParser):
    """Counts tags and collects what they refer to."""

    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def page_of(run, data, folder):
    split = Split.of(data, 0.25, 0.0, seed=0)
    run.save(folder, {DATA: split.to_frame().to_csv(index=False).encode()})
    text = write_page(folder, trust=True).read_text()
    names = Names()
    names.feed(text)
    assert not [link for link in names.links if not link.startswith("#")]
    return text, names.tags


@pytest.mark.slow
def test_a_hybrid_shows_its_equations_fields_and_numbers(tmp_path):
    model = tiny_model(physics=hs.equations("dx = k*y", k=2.0), diffusion="learn", noise="learn")
    data = wiggles(series=8)
    leaves = {"x": {"share": 0.3, "after": 2.5, "why": "It is unstable."}}
    text, tags = page_of(untrained_run(model, data, leaves=leaves), data, tmp_path / "run")
    assert "30% of the draws of &#39;x&#39;, half of these within 2.5 of the start" in text
    assert tags.count("svg") >= 12
    assert "math" in tags
    assert "Learned part" in text
    assert "measurement noise of x" in text


@pytest.mark.slow
def test_the_learned_part_is_written_with_what_it_sees_and_parameters_with_their_errors(tmp_path):
    model = tiny_model(
        physics=hs.equations("dx = k*y", k=hs.Bounded.of(2.0, 0.1, 9.0)),
        exact=("x",),
        sees={"y": ("y",)},
    )
    data = wiggles(series=8)
    run = untrained_run(model, data)
    known = replace(run.metadata, parameters={"k": {"value": 2.0, "error": 0.125}})
    text, _ = page_of(replace(run, metadata=known), data, tmp_path / "run")
    learned = re.findall(r'class="learned">(.*?)</mrow>', text)
    assert [re.sub("<[^>]+>", "", one) for one in learned] == ["fy(y)"]
    assert "± 0.12" in text


@pytest.mark.slow
def test_another_system_has_a_page_without_drift(tmp_path):
    data = wiggles(series=8)
    run = hs.fit(hs.baselines.Climatology(observed=("x", "y")), data)
    text, tags = page_of(run, data, tmp_path / "run")
    assert "Learned part" not in text
    assert "math" not in tags
    assert tags.count("svg") >= 8


@pytest.mark.parametrize("context", [2, 3])
@pytest.mark.slow
def test_a_latent_model_is_judged_after_its_context(context, tmp_path, monkeypatch):
    """Values and draws of the calibration panel are those of the same rows."""
    from hybridsde.report import page

    model = hs.HybridSDE(
        states=("z",),
        observed=("x", "y"),
        latent=hs.Latent(context, (4,), (4,)),
        hidden=(4,),
        diffusion=0.1,
        noise=0.1,
    )
    data, shapes = wiggles(series=8), []
    original = page.pit
    monkeypatch.setattr(
        page,
        "pit",
        lambda draws, values: (
            shapes.append((draws.shape[1:], values.shape)) or original(draws, values)
        ),
    )
    page_of(untrained_run(model, data), data, tmp_path / "run")
    assert shapes == [((2, 12 - context, 2),) * 2]


@pytest.mark.slow
def test_a_system_that_moves_in_equal_steps_has_a_page_where_recordings_end_at_different_times(
    tmp_path,
):
    data = wiggles(series=8)
    shorter = data.cut([(n, 0, 12 - n % 3) for n in range(8)])
    shorter = replace(shorter, ids=data.ids, origins=data.ids)
    run = hs.fit(hs.baselines.VectorAutoregression(observed=("x", "y")), shorter)
    assert run.metadata.interval is not None
    text, _ = page_of(run, shorter, tmp_path / "run")
    assert "Forecasts of held-out recordings" in text


def _lost(numbers):
    return jax.tree.map(lambda leaf: leaf * jnp.nan, numbers)


@pytest.mark.filterwarnings("ignore::hybridsde.InputNotice")
def test_scores_that_are_no_numbers_are_dashes(tmp_path):
    data = wiggles(series=8)
    run = hs.fit(hs.baselines.Climatology(observed=("x", "y")), data)
    lost = eqx.tree_at(lambda f: f.mean, run.forecaster, replace_fn=_lost)
    text, _ = page_of(replace(run, forecaster=lost), data, tmp_path / "run")
    assert re.search(r'class="card"><b>–</b><span>CRPS', text)
