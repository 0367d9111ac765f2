"""Kill a fit at random moments, take it up again, and compare with one that was left alone.

    python benchmarks/kill.py [--kills 20] [--epochs 150]

Runs `hybridsde fit` on the generated example in a temporary folder. Every kill is SIGKILL.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = [sys.executable, "-m", "hybridsde"]


def main() -> None:
    """Count how often, and whether the weights are the same to the last bit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([*COMMAND, "init", "--example", "--out", name], check=True)
        settings = folder / "settings.toml"
        settings.write_text(settings.read_text() + f"\n[train]\nepochs = {options.epochs}\n")
        whole = [*COMMAND, "fit", str(settings), "--quiet", "--out"]
        began = time.monotonic()
        subprocess.run([*whole, str(folder / "alone")], check=True)
        seconds = time.monotonic() - began
        killed = 0
        while killed < options.kills:
            began = time.monotonic()
            fit = subprocess.Popen([*whole, str(folder / "killed"), "--resume"])
            try:
                fit.wait(random.uniform(0.1, 1.0) * seconds)
            except subprocess.TimeoutExpired:
                fit.send_signal(signal.SIGKILL)
                fit.wait()
                killed += 1
                left = sorted(path.name for path in (folder / "killed").glob("*"))
                print(f"kill {killed}: {', '.join(left) or 'nothing written yet'}", flush=True)
                continue
            seconds = time.monotonic() - began  # less than the first, which compiled
            if fit.returncode:
                sys.exit(f"The fit ended with code {fit.returncode}.")
            print(f"finished after {killed} kills; the next begins anew", flush=True)
            compare(folder)
            for path in (folder / "killed").iterdir():
                path.unlink()
        if not (folder / "killed" / "run.json").exists():
            subprocess.run([*whole, str(folder / "killed"), "--resume"], check=True)
        compare(folder)
        print(f"{killed} kills; weights identical to those of the uninterrupted fit")


def compare(folder: Path) -> None:
    """Stop unless both fits ended with the same bytes."""
    ours, theirs = ((folder / n / "weights.safetensors").read_bytes() for n in ("killed", "alone"))
    if ours != theirs:
        sys.exit("The weights differ.")


if __name__ == "__main__":
    main()
