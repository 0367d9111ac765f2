"""What cannot be fitted, or not saved, is said before the fit."""

import inspect

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import pytest

import hybridsde as hs
from helpers import bayes, tiny_model, wiggles
from hybridsde.run.request import check_request


class Begun(Exception):
    """The fit has begun."""


@pytest.fixture(autouse=True)
def _no_fit(monkeypatch):
    def begin(*args, **kwargs):
        raise Begun

    monkeypatch.setattr("hybridsde.run.fitting._fit", begin)
    monkeypatch.setattr("hybridsde.run.fitting._fit_chosen", begin)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"objective": bayes(), "langevin": hs.Langevin()}, "say objective=LogPosterior"),
        ({"langevin": hs.Langevin()}, "say objective=LogPosterior"),
        ({"validation": wiggles(steps=1)}, "nothing to predict"),
        ({"horizon": 0}, "`horizon` must be a whole number"),
        ({"checkpoint": "nowhere/fit"}, "a folder that does not exist"),
    ],
)
def test_what_would_be_refused_is_refused_first(choice, message):
    with pytest.raises(ValueError, match=message):
        hs.fit(tiny_model(), wiggles(), **choice)


@pytest.mark.parametrize("choice", [{"objective": 0.5}, {"start_from": "run"}], ids=str)
def test_what_is_of_another_kind_is_refused_first(choice):
    """Also without the checks of types that tests run with."""
    nothing = dict.fromkeys(("validation", "horizon", "checkpoint", "start_from"))
    given = {"objective": None, "langevin": None, **nothing, **choice}
    with pytest.raises(hs.InputError, match=f"`{next(iter(choice))}` of a fit cannot be"):
        inspect.unwrap(check_request)(tiny_model(), wiggles(), **given)


def test_equations_outside_their_domain_are_refused_first():
    model = hs.HybridSDE(states=["x", "y"], physics=hs.equations("dx = log(y)"))
    with pytest.raises(hs.InputError, match=r"log\(y\) in dx is not finite at y = "):
        hs.fit(model, wiggles())


class MySolver(hs.EulerMaruyama):
    """A scheme that a run folder does not know."""


@pytest.mark.parametrize(
    ("settings", "choice", "message"),
    [
        ({"diffusion": lambda h, t: 0.1 + h**2}, {}, "`diffusion` is function"),
        ({"physics": hs.known_drift(lambda y: {"x": y})}, {}, "not at the top of a file"),
        ({}, {"objective": bayes(solver=MySolver())}, "the solver MySolver cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_said_first(settings, choice, message, tmp_path):
    with pytest.warns(hs.InputNotice, match=message), pytest.raises(Begun):
        hs.fit(tiny_model(**settings), wiggles(), **choice)
    with pytest.raises(hs.InputError, match=message):
        hs.fit(tiny_model(**settings), wiggles(), checkpoint=tmp_path / "fit", **choice)


class Spread(eqx.Module):
    """Numbers that look as if they were trained."""

    size: jnp.ndarray = eqx.field(default_factory=lambda: jnp.ones(2))

    def __call__(self, *state):
        return self.size


def test_modules_whose_numbers_would_not_be_trained_are_refused():
    with pytest.raises(ValueError, match=r"a Spread that holds 2 numbers.*AbstractDiffusion"):
        tiny_model(diffusion=Spread())
    with pytest.raises(ValueError, match=r"a MLP that holds .*derive the module from .*Physics"):
        hs.known_drift(eqx.nn.MLP(2, 2, 4, 1, key=jr.key(0)))
