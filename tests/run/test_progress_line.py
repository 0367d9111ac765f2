"""How far a fit is, where somebody looks."""

import io

import numpy as np

import hybridsde as hs
from helpers import tiny_model, wiggles
from hybridsde.fit import Progress
from hybridsde.run.progress_line import progress_line


def test_the_line_is_drawn_over_itself_and_removed():
    out = io.StringIO()
    with progress_line(True, out) as (report,):
        report(Progress(1, 4, {"loss": np.array(2.5)}))
        report(Progress(4, 4, {"loss": np.array(-1.25)}))
    lines = out.getvalue().split("\r")
    assert "4/4  loss -1.25" in lines[-3]
    assert not lines[-2].strip()
    assert "\n" not in out.getvalue()


def test_a_fit_shows_it_where_it_is_asked_for_or_looked_at(capsys, monkeypatch):
    brief, data = hs.Training(epochs=2, batch_size=6), wiggles()
    hs.fit(tiny_model(learned="network"), data, training=brief)
    assert capsys.readouterr().err == ""
    hs.fit(tiny_model(learned="network"), data, training=brief, progress=True)
    assert "2/2  loss" in capsys.readouterr().err
    monkeypatch.setattr("hybridsde.run.fitting.somebody_looks", lambda stream: True)
    hs.fit(tiny_model(learned="network"), data, training=brief)
    assert "2/2  loss" in capsys.readouterr().err
    hs.fit(tiny_model(learned="network"), data, training=brief, callbacks=[lambda progress: None])
    assert capsys.readouterr().err == ""
