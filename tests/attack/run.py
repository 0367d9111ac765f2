"""`make attack`: as many hostile inputs as are asked for, on all cores, counted.

    python tests/attack/run.py [--equations 1000000] [--tables 100000] [--settings 10000]
        [--folders 10000] [--kills 1000] [--first 0]

Ends with code 1 where one of them ended in anything but an answer or one line that says why not,
took longer than two seconds, wrote outside its folder, or lost a run.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
os.environ["HYBRIDSDE_CACHE"] = "off"
KINDS = {"equations": 1_000_000, "tables": 100_000, "settings": 10_000, "folders": 10_000}
BATCH = 100
SHOWN = 20


def some(kind: str, first: int, count: int, room: str) -> tuple[Counter, list[str]]:
    """A batch of cases: how they ended, and what should not have happened."""
    import attacks

    place = Path(room)
    work = {
        "equations": attacks.equation,
        "tables": partial(attacks.table, folder=place),
        "settings": partial(attacks.settings, folder=place),
        "folders": partial(attacks.folder, run=place / "run", room=place),
    }[kind]
    ends, wrong = Counter(), []
    for seed in range(first, first + count):
        try:
            ends[work(seed)] += 1
        except AssertionError as error:
            ends["wrong"] += 1
            wrong.append(f"{kind} {seed}: {str(error)[:300]}")
    return ends, wrong


def main() -> int:
    """Run them all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for kind, count in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, default=count)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as room:
        from attacks import write_run
        from kills import attack_by_killing

        write_run(Path(room) / "run")
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            for kind in KINDS:
                began, ends, wrong = time.monotonic(), Counter(), []
                count = getattr(asked, kind)
                starts = range(asked.first, asked.first + count, BATCH)
                sizes = [min(BATCH, asked.first + count - start) for start in starts]
                same = len(starts)
                for one, faulty in pool.map(some, [kind] * same, starts, sizes, [room] * same):
                    ends += one
                    wrong += faulty
                report(kind, ends, wrong, time.monotonic() - began)
                faults += len(wrong)
        began = time.monotonic()
        ends, wrong = attack_by_killing(asked.kills, Path(room), asked.first)
        report("kills", ends, wrong, time.monotonic() - began)
    return int(faults + len(wrong) > 0)


def report(kind: str, ends: Counter, wrong: list[str], seconds: float) -> None:
    """One line, and the first things that went wrong."""
    parts = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    lines = [f"{sum(ends.values())} {kind} in {seconds:.0f} s: {parts or 'none'}"]
    sys.stdout.write("\n    ".join([*lines, *wrong[:SHOWN]]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
