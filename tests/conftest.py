import itertools

import jax
import jax.random as jr
import matplotlib as mpl
import pytest

mpl.use("agg")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def getkey():
    """Keys that differ within a test and repeat from run to run."""
    counter = itertools.count()
    return lambda: jr.fold_in(jr.key(2021), next(counter))
