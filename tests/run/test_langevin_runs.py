"""Runs whose networks a sampler visited, and settings that ask for them."""

import json

import pytest

import hybridsde as hs
from helpers import PLAIN, plain_fit, tiny_model, wiggles
from hybridsde.project.settings_file import read_settings
from hybridsde.run import certified

KEPT = 3


@pytest.fixture(scope="module")
def run():
    model = tiny_model(physics=hs.equations("dx = 2*y"), hidden=())
    langevin = hs.Langevin(steps=4 * KEPT, keep=KEPT)
    training = hs.Training(epochs=1, batch_size=6)
    loss = hs.LogPosterior(**PLAIN, samples=1)
    return hs.fit(model, wiggles(), objective=loss, langevin=langevin, training=training)


@pytest.mark.slow
def test_a_finished_run_is_no_prior(run):
    """The remedy that is named works: unseen recordings certify it."""
    with pytest.raises(hs.InputError, match=r"another objective.*\(bound holdout\)"):
        certified(run, wiggles(), wiggles(series=4, seed=1))
    found = run.certify(wiggles(series=4, seed=1), bound="holdout")
    assert found.kind.startswith("hold-out")
    assert 0 < found.bound <= 1


@pytest.mark.parametrize("bound", ["auto", "kl", "ub", "holdout"])
@pytest.mark.slow
def test_recordings_of_the_fit_are_refused(bound, run):
    with pytest.raises(hs.InputError, match=r"'0' was seen before \(the model was fitted to it\)"):
        run.certify(wiggles(), bound=bound)
    with pytest.raises(hs.InputError, match=r"Certify on others\."):
        run.certifiable(wiggles(), bound=bound)


@pytest.fixture
def folder(run, tmp_path):
    run.save(tmp_path / "run")
    return tmp_path / "run"


def count(path, networks):
    """Let a run folder say another number of networks."""
    content = json.loads(path.read_text())
    content["forecaster"]["networks"] = networks
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("networks", [-1, "x", 1.5, None, [3]])
def test_a_folder_that_counts_its_networks_wrongly_is_refused(networks, folder):
    path = folder / "run.json"
    assert json.loads(path.read_text())["forecaster"]["networks"] == KEPT
    count(path, networks)
    with pytest.raises(hs.InputError, match=r"run\.json is damaged \('networks' is .*Fit again"):
        hs.Run.load(folder)


@pytest.mark.parametrize("networks", [0, KEPT - 1])
def test_another_number_of_networks_does_not_fit_the_weights(networks, folder):
    count(folder / "run.json", networks)
    with pytest.raises(hs.InputError, match=r"weights\.safetensors"):
        hs.Run.load(folder)


def test_physics_alone_has_no_networks(tmp_path):
    model = hs.HybridSDE(states=["x", "y"], physics=hs.equations("dx = 2*y"), hidden=None)
    plain_fit(model, wiggles(), training=hs.Training(epochs=1)).save(tmp_path / "run")
    count(tmp_path / "run" / "run.json", KEPT)
    with pytest.raises(hs.InputError, match="'networks' is 3"):
        hs.Run.load(tmp_path / "run")


def settings(tmp_path, *lines):
    path = tmp_path / "settings.toml"
    path.write_text("\n".join(['[data]\nfiles = "a.csv"\nstates = ["x"]\n[train]', *lines]))
    return read_settings(path).train


@pytest.mark.parametrize(("name", "kind"), [("vi", hs.ELBO), ("sgld", hs.LogPosterior)])
def test_settings_name_the_other_objectives(name, kind, tmp_path):
    train = settings(tmp_path, f'objective = "{name}"', "samples = 3", 'estimator = "log_mean"')
    found = train.build_objective(tiny_model())
    assert found is not None
    assert type(found) is kind
    assert (found.samples, found.estimator) == (3, "log_mean")
    assert (train.langevin is None) == (name == "vi")


def test_settings_cannot_ask_for_a_certificate_of_samples(tmp_path):
    with pytest.raises(hs.InputError, match=r"prior_fraction is for certificates.*sgld"):
        settings(tmp_path, 'objective = "sgld"', "prior_fraction = 0.5")
    assert settings(tmp_path, 'objective = "vi"', "prior_fraction = 0.5").prior_fraction == 0.5
