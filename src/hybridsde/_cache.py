"""Compiled programs kept between runs, so that the second start of a command is fast."""

import os
from pathlib import Path

import jax
from platformdirs import user_cache_path

SWITCH = "HYBRIDSDE_CACHE"
"""Environment variable: a folder for compiled programs, or "off"."""


def keep_compiled() -> Path | None:
    """Have JAX keep what it compiles in the user's cache folder; None where that is switched off.

    A folder that JAX has already been told of is left as it is.
    """
    wanted = os.environ.get(SWITCH, "")
    if wanted.lower() in ("off", "0", "no"):
        return None
    known = getattr(jax.config, "jax_compilation_cache_dir", None)
    folder = Path(known) if known else Path(wanted) if wanted else user_cache_path("hybridsde")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    return folder
