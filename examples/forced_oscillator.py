"""A driven pendulum with unknown friction: physics, inputs, gaps and irregular times."""

# %% Recordings: eight runs of different lengths at irregular times, one value in ten missing.
import numpy as np

import hybridsde as hs

EPOCHS = 200
rng = np.random.default_rng(0)


def record(length: int):
    """One run: angle and speed under a push u(t), with friction that nobody wrote down."""
    t = np.cumsum(rng.uniform(0.02, 0.08, length))
    push = 2.0 * np.sin(1.3 * t + rng.uniform(0, 6))
    angle, speed = rng.uniform(-1.5, 1.5, 2)
    rows = [(angle, speed)]
    for dt, u in zip(np.diff(t), push, strict=False):
        friction = 0.4 * speed + 0.3 * speed * abs(speed)
        angle, speed = (
            angle + speed * dt + 0.02 * np.sqrt(dt) * rng.normal(),
            speed + (-4.0 * np.sin(angle) + u - friction) * dt + 0.1 * np.sqrt(dt) * rng.normal(),
        )
        rows.append((angle, speed))
    return t, np.array(rows) + 0.01 * rng.normal(size=(length, 2)), push[:, None]


runs = [record(length) for length in rng.integers(60, 120, 12)]
seen = [rng.random(values.shape) > 0.1 for _, values, _ in runs]
data = hs.Trajectories.from_arrays(
    [t for t, _, _ in runs],
    [values for _, values, _ in runs],
    states=["angle", "speed"],
    observed=seen,
    inputs=[push for _, _, push in runs],
    input_names=["push"],
)
train, test = data.split(0.7, seed=0)
print(train)

# %% What is known: a frictionless pendulum. What is missing will be learned.
import jax.numpy as jnp


def pendulum(angle, speed, push, stiffness):
    """Angle and speed without friction."""
    return {"angle": speed, "speed": -stiffness * jnp.sin(angle) + push}


hybrid = hs.HybridSDE(
    states=["angle", "speed"],
    inputs=["push"],
    physics=hs.known_drift(pendulum, stiffness=4.0),
    diffusion=[0.02, 0.1],
    noise=0.05,
    hidden=(32, 32),
)

# %% Fit on short windows, score on longer ones of held-out runs.
training = hs.Training(epochs=EPOCHS, batch_size=8, longest=20)
run = hs.fit(hybrid, train, training=training, seed=0)
print(run.score(test.windows(50), draws=40))

# %% Forecast a held-out run with its own pushes, and look at it.
one = test.take([0])
forecast = run.forecast(one.start(), one.times[0, 1:], inputs=one.inputs[:, 1:], draws=100)
forecast.plot(one).savefig("pendulum.png", dpi=120)
print(forecast.variance().isel(time=-1).to_array().squeeze().round(5).values)
