"""Compiled programs kept between runs, so that the second start of a command is fast."""

import gc
import os
from pathlib import Path

import jax
from platformdirs import user_cache_path

SWITCH = "HYBRIDSDE_CACHE"
"""Environment variable: a folder for compiled programs, or "off"."""
OFF = ("off", "0", "no")

QUICK = ("--xla_backend_optimization_level=1", "--xla_llvm_disable_expensive_passes=true")
"""Flags with which programs compile faster and run no slower, measured on filters."""
QUICKER = "--xla_cpu_use_fusion_emitters=false"
"""Another, which jax 0.10 knows; a flag that a version does not know ends the process."""
FULL = 0.4
"""Of the memory maps that a process may have: compiled programs are then forgotten."""


def compile_quickly() -> None:
    """Have XLA spend less time on its programs; nothing where its flags are set already.

    Must be called before the first computation.
    """
    newest = (QUICKER,) if jax.__version_info__[:2] == (0, 10) else ()
    os.environ.setdefault("XLA_FLAGS", " ".join((*QUICK, *newest)))


def keep_compiled() -> Path | None:
    """Have JAX keep what it compiles in the user's cache folder; None where that is switched off.

    A folder that JAX has already been told of is left as it is.
    """
    wanted = os.environ.get(SWITCH, "")
    if wanted.lower() in OFF:
        return None
    known = getattr(jax.config, "jax_compilation_cache_dir", None)
    folder = Path(known) if known else Path(wanted) if wanted else user_cache_path("hybridsde")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    return folder


def keep_compiled_here() -> None:
    """The same in a session of Python, where it has no cache of its own and the folder can be used.

    Called by `fit`: what a session compiles from then on is kept.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    wanted = os.environ.get(SWITCH, "")
    folder = Path(wanted) if wanted else user_cache_path("hybridsde")
    if wanted.lower() in OFF:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        keep_compiled()


def make_room(most: int | None = None) -> bool:
    """Forget compiled programs before they take all memory maps of the process; whether it did.

    Every program holds some, and a process that runs out of them is ended by the compiler: after
    some thirty fits of recordings that differ in shape. Programs that are needed again are compiled
    again, or read from the cache. `most` maps are allowed, by default what the system allows, where
    it says so.
    """
    try:
        maps = Path("/proc/self/maps").read_bytes().count(b"\n")
        limit = most or int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return False
    if maps < FULL * limit:
        return False
    jax.clear_caches()
    gc.collect()
    return True
