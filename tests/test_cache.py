"""Compiled programs on disk."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from hybridsde._cache import keep_compiled_here, make_room

PROGRAM = """
import jax, jax.numpy as jnp
from hybridsde._cache import keep_compiled
folder = keep_compiled()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x))(jnp.ones((8, 8))).block_until_ready()
print(folder)
"""


def run(tmp_path, **environment) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "HYBRIDSDE_CACHE"}
    command = [sys.executable, "-c", PROGRAM]
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "JAX_COMPILATION_CACHE_DIR": ""}
    done = subprocess.run(
        command, env=clean | home | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_compiled_programs_are_kept_where_asked(tmp_path):
    folder = tmp_path / "kept"
    assert run(tmp_path, HYBRIDSDE_CACHE=str(folder)) == str(folder)
    assert any(folder.iterdir())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems, other folders")
def test_by_default_in_the_users_cache_folder(tmp_path):
    assert run(tmp_path) == str(tmp_path / "home" / "hybridsde")


@pytest.mark.slow
def test_nothing_is_kept_when_switched_off(tmp_path):
    assert run(tmp_path, HYBRIDSDE_CACHE="off") == "None"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("own", "wanted", "found"),
    [(None, "kept", "kept"), (None, "off", None), ("mine", "kept", "mine"), (None, "file/x", None)],
)
def test_a_session_keeps_what_a_fit_compiles_unless_it_has_a_cache(
    own, wanted, found, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("no folder")
    folder = wanted if wanted == "off" else str(tmp_path / wanted)
    monkeypatch.setenv("HYBRIDSDE_CACHE", folder)
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    try:
        jax.config.update(names[0], own)
        keep_compiled_here()
        expected = str(tmp_path / "kept") if found == "kept" else found
        assert jax.config.jax_compilation_cache_dir == expected
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have other limits")
def test_programs_are_forgotten_before_memory_maps_run_out():
    @jax.jit
    def program(x):
        return jnp.sin(x) * 2

    program(jnp.ones(3))
    assert program._cache_size() == 1
    assert not make_room(most=10**9)
    assert program._cache_size() == 1
    assert make_room(most=10)
    assert program._cache_size() == 0
