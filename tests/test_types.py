"""What a user's type checker sees of the package."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hybridsde

ROOT = Path(__file__).parents[1]
WRONG = """
import hybridsde as hs

model = hs.HybridSDE(states=["x"], learned="nonsense")  # 1
hs.HybridSDE(states=["x"], learned=("library", "nonsense"))  # 2
hs.HybridSDE(states=["x"], weights="held", far="near", interpolation="cubic")  # 3, 4, 5
hs.Training(schedule="linear")  # 6
hs.EmpiricalPACBayes(estimator="median", path_kl="max")  # 7, 8


def asked(run: hs.Run, data: hs.Trajectories) -> None:
    run.forecast(data, steps=3, estimator="kalman")  # 9
    run.certify(data, loss="rmse")  # 10
    hs.fit(model, data, objective=0.5)  # 11
"""


def errors(folder: Path, *paths: Path) -> list[dict]:
    """What pyright says of files, with the package found where it is tested."""
    config = {
        "include": [str(path) for path in paths],
        "extraPaths": [str(Path(hybridsde.__file__).parents[1])],
        "typeCheckingMode": "basic",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "-p", str(folder), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [one for one in found if one["severity"] == "error"]


def test_the_package_says_that_it_is_typed():
    assert (Path(hybridsde.__file__).parent / "py.typed").exists()


@pytest.mark.slow
def test_wrong_words_do_not_pass(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    found = errors(tmp_path, tmp_path / "wrong.py")
    lines = [one["range"]["start"]["line"] for one in found]
    wanted = [
        n
        for n, line in enumerate(WRONG.splitlines())
        for _ in (line.rpartition("# ")[2].split(",") if "# " in line else ())
    ]
    assert sorted(lines) == wanted, [one["message"] for one in found]


@pytest.mark.slow
def test_examples_pass(tmp_path):
    found = errors(tmp_path, *sorted((ROOT / "examples").glob("*.py")))
    assert not found, [(Path(one["file"]).name, one["message"]) for one in found]
