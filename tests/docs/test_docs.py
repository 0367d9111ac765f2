"""Documentation that cannot go stale: names exist, code blocks run."""

import importlib
import os
import re
from pathlib import Path

import pytest

import hybridsde
from hybridsde import registry
from hybridsde.project.settings_file import read_settings

ROOT = Path(__file__).parents[2]
EQUATIONS = (ROOT / "docs/equations.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in EQUATIONS.splitlines()
    if line.startswith("| ") and "hybridsde." in line
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_functions_and_tests_of_every_equation_exist(row):
    _, _, function, test = row
    module, name = function.strip("`").rsplit(".", 1)
    assert hasattr(importlib.import_module(module), name)
    path, case = test.strip("`").split("::")
    assert re.search(rf"^def {case}\(", (ROOT / path).read_text(), re.MULTILINE)


def test_every_cited_equation_is_mapped():
    """Docstrings cite `eq. label`, lemmas, theorems and algorithms; each stands in the table."""
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    cells = " ".join(row[0] for row in ROWS)
    cited = set(re.findall(r"eq\. ([a-z][\w-]*)", sources, re.IGNORECASE))
    mapped = set(re.findall(r"eq:([\w-]+)", cells))
    assert cited <= mapped, f"not in docs/equations.md: {cited - mapped}"
    results = set(re.findall(r"(?:Lemma|Theorem|Algorithm) \d", sources))
    assert results
    assert all(result in cells for result in results)


def test_notation_labels_are_the_papers():
    notation = (ROOT / "docs/notation.md").read_text()
    labels = set(re.findall(r"eq:([\w-]+)", notation)) - {"true_risk"}
    assert labels <= set(re.findall(r"eq:([\w-]+)", EQUATIONS))


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    written = ("made/",)  # pages that the build of the site adds; it checks links to them
    stored = [link for link in links if not link.startswith(written)]
    missing = [link for link in stored if not (page.parent / link).exists()]
    assert not missing, f"{page.name} links to {missing}"


WITH_CODE = [
    "CONTRIBUTING.md",
    "docs/baselines.md",
    pytest.param("docs/equations.md", marks=pytest.mark.slow),
    pytest.param("docs/history.md", marks=pytest.mark.slow),
    pytest.param("docs/scale.md", marks=pytest.mark.slow),
    pytest.param("README.md", marks=pytest.mark.slow),
    pytest.param("docs/certificates.md", marks=pytest.mark.long),
    pytest.param("docs/tutorials/tank.md", marks=pytest.mark.long),
    pytest.param("docs/tutorials/ecosystem.md", marks=pytest.mark.long),
    pytest.param("docs/tutorials/patient.md", marks=pytest.mark.long),
]
SHORTER = {
    "Training(epochs=20, batch_size=20))": "Training(epochs=2, batch_size=20), "
    "posterior=hs.Training(epochs=2))",
    "epochs=20)": "epochs=2)",
    "draws=2000": "draws=400",
    'loss="interval")': 'loss="interval", draws=400)',
}


@pytest.mark.parametrize("page", WITH_CODE)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    """All blocks of a page in order, in one namespace: less to learn from, for a shorter time."""
    monkeypatch.chdir(tmp_path)
    for known in ("_CLASSES", "SYSTEMS"):
        monkeypatch.setattr(registry, known, dict(getattr(registry, known)))
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    namespace: dict = {"__name__": "__docs__"}
    for block in blocks:
        for long, short in SHORTER.items():
            block = block.replace(long, short)
        exec(compile(block, page, "exec"), namespace)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::hybridsde.InputNotice")
@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(script, tmp_path, monkeypatch):
    """With two epochs, in a folder of their own; those that need data only where they are."""
    monkeypatch.chdir(tmp_path)
    code = script.read_text()
    assert "# %%" in code
    if "HYBRIDSDE_DATA" in code and "HYBRIDSDE_DATA" not in os.environ:
        pytest.skip("HYBRIDSDE_DATA is not set")
    for settings in (ROOT / "examples").glob("*.toml"):
        short = re.sub(r"epochs = \d+", "epochs = 2", settings.read_text())
        (tmp_path / settings.name).write_text(short)
    short = re.sub(r"EPOCHS = \d+", "EPOCHS = 2", code)
    exec(compile(short, script.name, "exec"), {"__file__": str(tmp_path / script.name)})


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda p: p.name)
def test_settings_of_examples_are_valid(path):
    settings = read_settings(path)
    model = settings.build_model(path.parent, trust=False)
    assert model.physics.known(settings.states, tuple(settings.data.inputs)) == settings.states


def test_the_reference_shows_every_public_name():
    page = (ROOT / "docs/reference.md").read_text()
    shown = re.findall(r"^::: (hybridsde\.[\w.]+)$", page, re.MULTILINE)
    for path in shown:
        module, name = path.rsplit(".", 1)
        assert getattr(importlib.import_module(module), name) is getattr(hybridsde, name), path
    modules = {"baselines", "datasets"}
    source = (ROOT / "src/hybridsde/__init__.py").read_text()
    public = set(re.findall(r"^from .* as (\w+)$", source, re.MULTILINE)) - modules
    assert {path.rsplit(".", 1)[1] for path in shown} == public
    assert all(f"`hs.{name}`" in page for name in modules)


def test_readme_names_its_two_commands():
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
