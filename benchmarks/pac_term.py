"""What the PAC term is worth: Empirical PAC-Bayes against Empirical Bayes, paired.

    python benchmarks/pac_term.py [--repetitions 20] [--sizes 2 3 5 10 20 40]
        [--learned network library both] [--found FOLDER] [--out docs/results/pac-term.md]

Lorenz, the paper's protocol: sequences of 24 rows 0.01 apart, G = 1; the mean squared error and the
CRPS of 24 steps from the first row of 20 new sequences, and the coverage of 90 % intervals. Each
known parameter is off by a normal error of one. All repetitions, strengths of the term and rows of
what is known are trained side by side as one program, from the same weights, on the same
recordings, with the same random numbers; only the term differs. Strength 0 is Empirical Bayes, 1
the paper's; its path KL is the mean over sequences or, as Algorithm 1 prints it, the sum. A library
begins at what its evidence finds and goes on by gradient steps on the loss; with `both`, networks
learn beside it what it leaves. `--found` keeps libraries, which need no accelerator, between runs.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from interval_coverage import markdown_table

import hybridsde as hs
from hybridsde._parameters import Fixed
from hybridsde.fit import train_many
from hybridsde.forecast import evaluate
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.defaults import default_training
from hybridsde.hybrid.sparse import fit_sparse
from hybridsde.paper.lorenz import KNOWN, PROTOCOLS, SYSTEM
from hybridsde.paper.system import recording
from hybridsde.simulate import Heun

DRAWS = 100
FIRST = 9000
"""The first seed: recordings that nothing was chosen on."""
SOLVER = Heun()
ROWS = ("none", "y", "all")
ARMS = (("E-Bayes", 0.0, "mean"), ("E-PAC, mean", 1.0, "mean"), ("E-PAC, sum", 1.0, "sum"))
"""Name, strength of the term, and how path KLs of sequences are put together."""


PIECES = {"network": "network", "library": "library", "both": ("library", "network")}


@eqx.filter_jit
def prepared(protocol, learned: str, gates, data_keys, physics_keys, keys):
    """Recordings and models before training, of every case; what is known is decided by gates."""
    last = {"last_layer": 1.0} if learned == "both" else {}  # as `fit` has it
    spec = HybridSDE(states=SYSTEM.states, physics=SYSTEM.truth(), learned=PIECES[learned], **last)

    def one(gate, data_key, physics_key, key):
        train, test = recording(SYSTEM, protocol, key=data_key)
        model = replace(spec, physics=SYSTEM.noisy(key=physics_key)).init(train, key=key)
        return eqx.tree_at(lambda m: m.known.gate.strength.frozen, model, gate), train, test

    return eqx.filter_vmap(one)(gates, data_keys, physics_keys, keys)


def by_evidence(models, trains, count: int, kept: Path | None):
    """Every model with the library that its evidence finds, or that was found and kept."""
    if kept is not None and kept.exists():
        return eqx.tree_deserialise_leaves(kept, models)
    found = []
    for number in range(count):
        model, train = jax.tree.map(
            lambda leaf, number=number: leaf[number] if eqx.is_array(leaf) else leaf,
            (models, trains),
        )
        found.append(eqx.partition(fit_sparse(model, SOLVER, train).model, eqx.is_array))
    arrays, static = zip(*found, strict=True)
    all_of_them = eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), static[0])
    if kept is not None:
        eqx.tree_serialise_leaves(kept, all_of_them)
    return all_of_them


def beside(models, libraries):
    """Networks beside libraries, which stay as they are."""
    return eqx.tree_at(
        lambda m: (m.network.library, m.known),
        models,
        (Fixed(libraries.network), libraries.known),
    )


@eqx.filter_jit
def scores(models, tests, keys):
    """Of every repetition."""

    def one(model, test, key):
        found = evaluate(SDEForecaster(model, SOLVER), test, DRAWS, key=key)
        return found["mse"][-1], found["crps"][-1], found["coverage90"][-1]

    return eqx.filter_vmap(one)(models, tests, keys)


def one_size(
    size: int, learned: str, repetitions: int, epochs: float, kept: Path | None
) -> list[dict]:
    """All rows, arms and repetitions of one number of sequences."""
    protocol = replace(PROTOCOLS["24"], train_sequences=size)
    cases = [(row, n) for row in ROWS for n in range(repetitions)]
    keys = jnp.stack([jr.split(jr.key(FIRST + n), 5) for _, n in cases])
    gates = jnp.stack([jnp.asarray(SYSTEM.gate(KNOWN[row])) for row, _ in cases])
    models, trains, tests = prepared(protocol, learned, gates, *keys[:, :3].T)
    if learned != "network":
        empty, _, _ = prepared(protocol, "library", gates, *keys[:, :3].T)
        file = None if kept is None else kept / f"{size}-{repetitions}.eqx"
        libraries = by_evidence(empty, trains, len(cases), file)
        models = libraries if learned == "library" else beside(models, libraries)
    rows = []
    samples = HybridSDE(states=SYSTEM.states, learned=PIECES[learned]).samples
    usual = default_training(size)
    training = replace(usual, epochs=max(1, round(epochs * usual.epochs)))
    if learned == "library":
        training = replace(training, learning_rate=2e-3)
    for name, strength, path_kl in ARMS:
        began = time.perf_counter()
        loss = hs.EmpiricalPACBayes(samples=samples, path_kl=path_kl, solver=SOLVER)
        loss = replace(loss, strength=jnp.full(len(cases), strength))
        fitted = train_many(
            models, trains, loss, training=training, chunk=len(cases), keys=keys[:, 3]
        )  # fmt: skip
        found = scores(fitted.model, tests, keys[:, 4])
        mse, crps, coverage = (np.asarray(one, float) for one in found)
        print(size, name, round(time.perf_counter() - began, 1), "s", flush=True)
        for k, (row, n) in enumerate(cases):
            rows.append({"learned": learned, "sequences": size, "known": row, "repetition": n,
                         "arm": name, "mse": mse[k], "crps": crps[k], "coverage": coverage[k],
                         "diverged": bool(fitted.diverged[k])})  # fmt: skip
    return rows


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Medians by arm, and the paired difference of ln CRPS to Empirical Bayes with its error."""
    rows = []
    for (learned, size, known), group in frame.groupby(
        ["learned", "sequences", "known"], sort=False
    ):
        by = group.pivot_table(
            index="repetition", columns="arm", values=["mse", "crps", "coverage"]
        )
        for name, _, _ in ARMS:
            gain = 100 * (by["crps"][name] / by["crps"]["E-Bayes"] - 1)
            gain = gain.where(np.isfinite(gain)).dropna()
            rows.append({
                "learned": learned, "sequences": size, "known": known, "loss": name,
                "mse, median": by["mse"][name].median(), "crps": by["crps"][name].mean(),
                "coverage": by["coverage"][name].mean(), "crps against E-Bayes, %": gain.mean(),
                "± %": gain.sem(),
            })  # fmt: skip
    return pd.DataFrame(rows)


def write(out: Path, frame: pd.DataFrame) -> None:
    """The page."""
    text = f"# What the PAC term is worth\n\n{(__doc__ or '').strip()}\n\n"
    frame = frame.sort_values(["learned", "sequences"], kind="stable")
    out.write_text(f"{text}{markdown_table(summary(frame))}\n")


def main() -> None:
    """Run, and write everything as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 3, 5, 10, 20, 40])
    parser.add_argument("--learned", nargs="*", default=["network"], choices=list(PIECES))
    parser.add_argument("--found", type=Path, help="a folder for libraries that were found")
    parser.add_argument("--epochs", type=float, default=1.0, help="a share of the usual ones")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    rows = []
    for learned in chosen.learned:
        for size in chosen.sizes:
            rows += one_size(size, learned, chosen.repetitions, chosen.epochs, chosen.found)
            frame = pd.DataFrame(rows)
            print(summary(frame[frame["sequences"] == size]).to_string(index=False), flush=True)
            if chosen.out:
                frame.to_csv(chosen.out.with_suffix(".csv"), index=False)
                write(chosen.out, frame)


if __name__ == "__main__":
    main()
