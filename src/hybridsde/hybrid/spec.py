"""`HybridSDE`: what the user declares about a system before any data are seen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import Fixed
from hybridsde._types import PRNGKeyArray
from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Callback, Fitted, Langevin, Training
from hybridsde.fit.progress import Progress
from hybridsde.forecast import (
    AbstractForecaster,
    AbstractInference,
    ClosedForm,
    FromRandomStarts,
    GradientDescent,
)
from hybridsde.forecast.spec import structure_of
from hybridsde.hybrid.build import network_of, untrained
from hybridsde.hybrid.check_declaration import check_declaration
from hybridsde.hybrid.declaration import LIBRARY, NETWORK, AbstractDeclaration
from hybridsde.hybrid.defaults import default_solver, default_training
from hybridsde.hybrid.ensemble import fit_ensemble, with_own_numbers
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.hybrid.offsets import centred
from hybridsde.hybrid.settle import settle
from hybridsde.hybrid.sparse import fit_known, fit_sparse
from hybridsde.model.bayesian import MixtureMLP, SampledNetworks
from hybridsde.model.diffusion import AbstractDiffusion
from hybridsde.model.sde import BayesianSDE, check_starts
from hybridsde.objective import (
    AbstractObjective,
    AbstractSDEObjective,
    EmpiricalBayes,
    EmpiricalPACBayes,
    LogPosterior,
    solver_of,
)
from hybridsde.simulate import AbstractSolver
from hybridsde.simulate.schemes import solver_from_notes, solver_notes

NETWORKS = "networks"
"""How many networks a sampler kept, where one did."""
OWN = "own numbers"
"""Whether networks have physical parameters and diffusions of their own."""


@dataclass(frozen=True, eq=False, repr=False)
class HybridSDE(AbstractDeclaration):
    """A partially known stochastic system: names, known physics, and shapes of the rest.

    - `states`: names of the components of h.
    - `physics`: the equations that are known; see `known_drift`. Nothing by default.
    - `gate`: γ, the share of each known equation that is used: 1 by default, a number, one per
      state, numbers by name, or "learn".
    - `positive`: states that cannot be zero or less, such as populations. They are modelled by
      their logarithm; equations, data, forecasts and scores stay in raw units, `diffusion` and
      `noise` are relative.
    - `inputs`: names of the exogenous inputs u(t).
    - `observed`: which states are measured, or linear combinations of them by name. All by
      default.
    - `diffusion`: G as a number, one per state (zero for dynamics without noise), a matrix, a
      function (h, t) ↦ G, a `Positive` to learn a diagonal, "guess" for a diagonal by the roughness
      of the training data, or "learn" to learn one that begins there, which is the default.
    - `noise`: standard deviation of a measurement, a `Positive` with a floor to learn it, "guess"
      for a twentieth of each observation's spread, or "learn" to begin there, which is the
      default. Learn both `diffusion` and `noise` with the estimators "filtered" or "ahead" only:
      the others cannot tell them apart.
    - `learned`: what the learned part is made of. "library" is a sum of few readable terms, chosen
      by their evidence; "process" a Gaussian process, or what a library leaves to it where both
      are named; "network" Bayesian networks, trained by gradients on an objective, or networks for
      what a library leaves where both are named; "ensemble" a set of small networks, each found
      by second-order steps, through simulations of whole recordings where states are not measured:
      seconds instead of minutes. By default, "auto", `fit` takes a library, and where that leaves
      a doubt it tries networks too, an ensemble where states are not measured, and keeps what
      forecasts validation data better.
    - `degree`, `functions`, `terms`: of the library. Products of states and inputs up to a degree
      (three, or less where that makes too many), functions of single ones, and terms of your own
      as text, such as "u/(1 + u)". Sine and cosine are taken of `angles` alone. Of `positive`
      states terms make up the relative rate, dx/x.
    - `angles`: states and inputs that are angles in radians. Those of which a known equation takes
      a sine or cosine need not be named.
    - `knowledge`: what is known beside equations, as a `Knowledge`: conserved quantities, signs of
      couplings, symmetries, decay.
    - `hidden`, `activation`: the drift network; `hidden=None` learns no drift: physics alone.
    - `weights`: "path" holds a draw of the weights along a path, "local" redraws them at every
      step.
    - `standardise`: whether the network sees standardised numbers (physics never does).
    - `autonomous`: whether the network is kept from seeing the time.
    - `initial_sd`, `prior_sd`: spread of the weights before training, and under the prior.
    - `last_layer`: factor on the starting weights of the last layer; small starts at the known
      physics. One beside a library.
    - `start`: p(h₀); "first" is the first observation, "uncertain", the default, is the first
      observation with its noise and a learned spread for what it does not show. Or, by name, where
      states start that are not measured there: a number, a range, the name of an input whose
      first value it is (a dose), or "infer".
    - `bounds`: pairs of limits by name of a state, such as {"level": (0, 10)}; see `Bounds`.
    - `saturates`: pairs of limits of sensors, by name of what they measure. A measurement at a
      limit, of a sensor or of a state, says that the state is there or beyond.
    - `exact`: states whose equation is complete: nothing is added to it.
    - `flows`: learned amounts that leave one state and arrive in another, such as "infection: S ->
      E". The states that they change learn nothing else. Known ones belong to the equations.
    - `sees`: what the learned part of a state may depend on, by name of the state: states, inputs,
      and "t" unless autonomous. On everything by default.
    - `far`: what the learned part does far from the training data; "fade" to the known physics, or
      back to the data where nothing is known, or "free".
    - `members`: networks that are trained side by side from different weights, and forecast in
      equal shares; what they disagree about is what the data leave open. They share all other
      numbers. Latent models and weights that are redrawn have one.
    - `numerics`: the origin of time, the longest step of the solver, its scheme, and the size of
      what is not measured. What is left out is chosen by `fit`, which looks at the data.
    - `latent`: a `Latent`, where states are not what is measured but are encoded from the first
      rows of `observed` and decoded into all of them. By default `diffusion` and `noise` are then
      guessed, since no filter can tell them apart.
    - `interpolation`: of inputs between their times, "held" from each to the next or "linear".
    """

    def __post_init__(self):
        check_declaration(self)

    def settled(self, data: Trajectories) -> "HybridSDE":
        """With origin, step, scheme, and first guesses by least squares on the known equations."""
        found = centred(self, data)
        return settle(found, found._encode_quietly(data))

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> BayesianSDE:
        """The untrained model, its scales measured on `batch`. Can be mapped over repetitions."""
        return untrained(self, batch, key=key)

    def inference(
        self,
        data: Batch,
        objective: AbstractObjective | None = None,
        training: Training | None = None,
        langevin: Langevin | None = None,
    ) -> AbstractInference:
        """Empirical PAC-Bayes by default, Heun's rule, and a thousand steps of Adam.

        A learned part that is linear in its coefficients is found at once, by `fit_sparse`, and an
        objective that is given goes on from there. Where no drift is learned, all numbers follow
        from maximum likelihood. Networks beside a library begin
        once it is found. An ensemble is found by `fit_ensemble`, or trained on an objective that is
        given.
        """
        if (self.linear or self.complete) and objective is None and langevin is None:
            return ClosedForm(self._at_once)
        if self.ensemble and objective is None:
            return FromRandomStarts(self._ensemble)
        self.check_loss(objective, langevin)
        usual = EmpiricalBayes if self.noiseless else EmpiricalPACBayes
        loss = objective or usual(samples=self.samples, estimator=self.estimator)
        if isinstance(loss, LogPosterior):
            return replace(self, members=1)._descent(data, loss, training, langevin)
        if self.linear:
            begun = self._at_once(data, ()).model
            assert isinstance(begun, SDEForecaster)
            found = self._descent(data, loss, training, langevin)
            return replace(found, init=lambda data, key: begun.model)  # noqa: ARG005
        if self.both:
            return replace(self._descent(data, loss, training, langevin), init=self._after_library)
        return self._descent(data, loss, training, langevin)

    def check_loss(self, objective: AbstractObjective | None, langevin: Langevin | None) -> None:
        """A `ValueError` where a loss does not suit the model, or the steps after it."""
        if self.noiseless and isinstance(objective, EmpiricalPACBayes):
            raise ValueError(
                "Without diffusion there is no path KL, which this objective needs: give every "
                "state a little `diffusion`, or say objective=EmpiricalBayes()."
            )
        if langevin is not None and not isinstance(objective, LogPosterior):
            raise ValueError(
                "`langevin` steps follow the log posterior: say objective=LogPosterior()."
            )

    def _after_library(self, data: Batch, *, key: PRNGKeyArray) -> BayesianSDE:
        """Networks that begin anew beside the library that the data speak for."""
        found = replace(self, learned=LIBRARY)._at_once(data, ()).model
        assert isinstance(found, SDEForecaster)
        # What is left to learn is small: a small last layer would hide its slope. Noise and
        # diffusion begin anew: those of the library hold what the networks are to learn.
        begun = replace(self, last_layer=1.0).init(data, key=key)
        return eqx.tree_at(
            lambda m: (m.network.library, m.known),
            begun,
            (Fixed(found.model.network), found.model.known),
        )

    def _at_once(self, data: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        begun, solver = self._begun(data, jr.key(0))
        search = fit_known if self.complete else fit_sparse
        found = search(begun, solver, data, _reporter(data, callbacks))
        return self._found(found.model, solver, data, found.log_likelihoods)

    def _ensemble(
        self, data: Batch, callbacks: tuple[Callback, ...], key: PRNGKeyArray
    ) -> Fitted[AbstractForecaster]:
        first_key, other_key = jr.split(key)
        begun, solver = self._begun(data, first_key)
        others = network_of(self, key=other_key)
        assert isinstance(others, MixtureMLP)
        report = _reporter(data, callbacks)
        found = fit_ensemble(begun, others, solver, data, report, ahead=self.looks_ahead)
        return self._found(found.model, solver, data, found.log_likelihoods)

    def _begun(self, data: Batch, key: PRNGKeyArray) -> tuple[BayesianSDE, AbstractSolver]:
        """The untrained model, and the scheme that it is fitted with."""
        self._check_diffusion(data)
        untrained = eqx.filter_jit(lambda data, key: self.init(data, key=key))(data, key)
        return untrained, self.numerics.solver or default_solver(data)

    def _found(
        self, model: BayesianSDE, solver: AbstractSolver, data: Batch, values: tuple[float, ...]
    ) -> Fitted[AbstractForecaster]:
        losses = -np.array(values) / data.count
        steps = np.array(len(losses))
        forecaster = SDEForecaster(model, solver, self.numerics.step)
        lost = ~np.isfinite(losses[-1])
        return Fitted(forecaster, {"loss": losses}, np.array(lost), steps, steps)

    def _descent(
        self,
        data: Batch,
        loss: AbstractObjective,
        training: Training | None,
        langevin: Langevin | None,
    ) -> GradientDescent:
        solver = solver_of(loss) or self.numerics.solver or default_solver(data)
        if isinstance(loss, AbstractSDEObjective):
            loss = loss.with_solver(solver)
        self._check_diffusion(data)
        return GradientDescent(
            self.init,
            loss,
            training or default_training(data.count),
            langevin,
            finish=lambda model: SDEForecaster(model, solver, self.numerics.step),
        )

    def _check_diffusion(self, data: Batch) -> None:
        if callable(self.diffusion) or isinstance(self.diffusion, AbstractDiffusion):
            check_starts(self.init(data, key=jr.key(0)), data)

    def restore(self, notes: Mapping[str, Any]) -> SDEForecaster:
        """The structure of a fitted model with its scheme, and sampled networks if it has any."""
        networks = notes.get(NETWORKS, 0)
        whole = isinstance(networks, int) and not isinstance(networks, bool) and networks >= 0
        if not whole or (networks and NETWORK not in self.pieces):
            raise ValueError(f"{NETWORKS!r} is {networks!r}")

        def build(batch: Batch, *, key: PRNGKeyArray) -> BayesianSDE:
            if not networks:
                found = self.init(batch, key=key)
                return with_own_numbers(found, self.networks) if notes.get(OWN) else found
            model = replace(self, members=1).init(batch, key=key)
            samples = jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, (networks, *leaf.shape)), model.network.mean()
            )
            return model.with_networks(SampledNetworks(samples))

        solver = solver_from_notes(notes["solver"])
        return SDEForecaster(structure_of(self, build), solver, self.numerics.step)

    def notes_of(self, forecaster: AbstractForecaster) -> dict[str, Any]:
        """Its scheme, and how many networks a sampler kept."""
        assert isinstance(forecaster, SDEForecaster)
        network = forecaster.model.network
        kept = {NETWORKS: network.count} if isinstance(network, SampledNetworks) else {}
        own = {} if forecaster.model.own is None else {OWN: True}
        return {"solver": solver_notes(forecaster.solver), **kept, **own}


def _reporter(data: Batch, callbacks: tuple[Callback, ...]) -> Callable[[int, int, float], None]:
    """Tells callbacks how far a search is, and its log-likelihood as a loss for each series."""

    def report(done: int, of: int, value: float) -> None:
        for callback in callbacks:
            callback(Progress(done, of, {"loss": np.asarray(-value / data.count)}))

    return report
