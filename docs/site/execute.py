"""Runs the code of pages, each in an empty folder of its own: `execute.py PAGE OUT [PAGE OUT …]`.

Blocks of `python` run in order and in one namespace, lines of `bash` blocks in a shell; settings in
`toml` blocks are read as `hybridsde check` reads them. Any other line that begins with `hybridsde`
must be a command that exists, with options that it has. OUT is a folder: `results.json` holds what
each block printed and drew, beside every page of HTML that the commands wrote. What fails ends it.
"""

import contextlib
import io
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
import warnings
from pathlib import Path

BLOCK = re.compile(r"^```(python|bash|toml)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^    (hybridsde .*)$|`(hybridsde [a-z]+ [^`\n]*)`", re.MULTILINE)
LONGEST = 300
"""Seconds for one command."""


class Failed(Exception):
    """What a block did instead of its work."""


def execute(text: str) -> list[dict]:
    """What every block of a page printed and drew."""
    namespace = {"__name__": "__docs__"}
    runs = {
        "python": lambda code: run_python(code, namespace),
        "bash": run_shell,
        "toml": check_settings,
    }
    found = [runs[kind](code) for kind, code in BLOCK.findall(text)]
    for indented, inline in COMMAND.findall(BLOCK.sub("", text)):
        check_command(indented or inline)
    return found


def run_python(code: str, namespace: dict) -> dict:
    """A block of Python; figures that it left open are its pictures."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    before = plt.get_fignums()

    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "a block of python", "exec"), namespace)
    opened = [number for number in plt.get_fignums() if number not in before]
    pictures = [drawn(plt.figure(number)) for number in opened]
    plt.close("all")
    return {"said": said.getvalue(), "pictures": pictures}


def drawn(figure) -> str:
    """A figure as it stands in a page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", transparent=True)
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]


def run_shell(code: str) -> dict:
    """Commands, one after the other, by the programs of this environment."""
    here = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    plain = {**os.environ, "PATH": here, "COLUMNS": "96", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        ["bash", "-euc", code], env=plain, capture_output=True, text=True, timeout=LONGEST
    )
    if done.returncode:
        raise Failed(f"{code}ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return {"said": done.stdout, "pictures": []}


def check_settings(code: str) -> dict:
    """Settings, or a part of them that a file with data would complete."""
    from hybridsde.project import settings_file

    content = tomllib.loads(code)
    data = {"files": "mine.csv", "states": ["x"], "hidden_states": list(content.get("start", {}))}
    settings_file.check_settings({"data": data, **content}, "a block of toml")
    return {"said": "", "pictures": []}


def check_command(line: str) -> None:
    """A command that is shown and not run: it exists, and so do its options."""
    import typer

    from hybridsde.__main__ import app

    first = re.split(r"\s(?:#|\|)\s", re.sub(r"[\[\]]|…", " ", line))[0]
    words = shlex.split(re.sub(r"\s{2,}\w.*$", "", first))[1:]
    command = typer.main.get_command(app)
    while words and not words[0].startswith("-") and getattr(command, "commands", None):
        if words[0] not in command.commands:
            raise Failed(f"`{line}`: there is no command {words[0]!r}.")
        command = command.commands[words.pop(0)]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    wrong = [one for one in words if one.startswith("--") and one.split("=")[0] not in known]
    if wrong and "--help" not in wrong:
        raise Failed(f"`{line}`: {command.name} has no option {wrong[0]}.")


def keep(page: Path, out: Path) -> None:
    """Execute a page and keep what came of it."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = execute(text)
        for path in sorted(Path().rglob("*.html")):
            shutil.copy(path, out / path.name)
    used = [resource.getrusage(one) for one in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    kept = json.dumps({"blocks": found, "processor_seconds": seconds})
    (out / "results.json").write_text(kept, encoding="utf-8")


def main(places: list[Path]) -> None:
    """Pages and the folders for what comes of them, in turn."""
    from hybridsde._cache import compile_quickly, keep_compiled

    compile_quickly()
    keep_compiled()
    for page, out in zip(places[::2], places[1::2], strict=True):
        try:
            keep(page, out)
        except Exception:
            traceback.print_exc()
            raise SystemExit(f"{page}: a block fails.") from None


if __name__ == "__main__":
    main([Path(word).resolve() for word in sys.argv[1:]])
