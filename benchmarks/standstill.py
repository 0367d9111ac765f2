"""Why npODE has a Cholesky of its own: LAPACK inside a program that runs on all cores stands still.

    python benchmarks/standstill.py [--seconds 60]

Ten repetitions, spread over two devices, of a loss with a Cholesky factor in every step of a scan,
and its gradient, each size in a process of its own. Measured with jaxlib 0.10.2 on two cores:
matrices of 32 and 50 rows take milliseconds, those of 64 and 100 never end; on one device all of
them do.
"""

import argparse
import subprocess
import sys
import time

SIZES = ((32, 2), (50, 2), (64, 2), (100, 2), (100, 1))
"""Rows of the matrix, and devices."""
STEPS, REPETITIONS = 300, 10


def work(rows: int, devices: int) -> None:
    """One call of the compiled program, and how long it took."""
    import jax

    jax.config.update("jax_num_cpu_devices", devices)
    import jax.numpy as jnp
    import jax.random as jr

    from hybridsde._devices import over_seeds

    def one(key):
        x = jr.normal(key, (rows, rows))

        def loss(matrix):
            def step(last, _):
                lower = jnp.linalg.cholesky(matrix + 1e-3 * last * jnp.eye(rows))
                z = jax.scipy.linalg.solve_triangular(lower, jnp.ones(rows), lower=True)
                return jnp.tanh(z @ z), None

            return jax.lax.scan(step, jnp.zeros(()), length=STEPS)[0]

        return jax.value_and_grad(loss)(x @ x.T + rows * jnp.eye(rows))[0]

    keys = jr.split(jr.key(0), REPETITIONS)
    program = jax.jit(lambda keys: over_seeds(one, keys))
    jax.block_until_ready(program(keys))
    began = time.perf_counter()
    jax.block_until_ready(program(keys))
    print(f"{time.perf_counter() - began:.3f} s")


def main() -> None:
    """Every size, with a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--one", type=int, nargs=2, help="rows and devices, in this process")
    chosen = parser.parse_args()
    if chosen.one:
        work(*chosen.one)
        return
    for rows, devices in SIZES:
        command = [sys.executable, __file__, "--one", str(rows), str(devices)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=chosen.seconds)
            said = done.stdout.strip() or done.stderr.strip().splitlines()[-1]
        except subprocess.TimeoutExpired:
            said = f"stands still for {chosen.seconds:g} s"
        print(f"{rows} rows, {devices} devices: {said}", flush=True)


if __name__ == "__main__":
    main()
