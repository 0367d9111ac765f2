"""Hooks of the documentation site: code is run as it is shown, and pages of the root are shown too.

Every block of Python, shell and settings runs before the first page is written; what it prints and
draws stands below it. Pages are run in processes of their own, as many as there are cores. A block
that fails ends the build.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from execute import BLOCK

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
             "SECURITY.md": "security.md", "README.md": "overview.md"}  # fmt: skip
EXAMPLES = "examples"
EXECUTE = str(Path(__file__).with_name("execute.py"))
RUNS = re.compile(r"^```(python|bash)$", re.MULTILINE)
MADE = "made"
"""Folder of the site for pages that commands wrote."""
LONGEST_FIRST = ("README.md", "docs/certificates.md", "docs/index.md", "docs/tutorials/patient.md")
_RESULTS: dict[str, list[dict]] = {}
"""What the blocks of a page printed and drew, by its place in the site."""


def on_files(files, config):
    """Run all code; add pages of the repository's root, the examples, and `llms.txt`."""
    from mkdocs.structure.files import File

    for source, target in FROM_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, place in {**FROM_ROOT, EXAMPLES: "examples.md"}.items():
            text = text.replace(f"]({other})", f"]({place})")
        files.append(File.generated(config, target, content=text))
    files.append(File.generated(config, "examples.md", content=_examples()))
    with tempfile.TemporaryDirectory() as folder:
        for made in _run_all(Path(folder)):
            place = f"{MADE}/{made.name}"
            files.append(File.generated(config, place, content=made.read_bytes()))
    pages = [one for one in files.documentation_pages() if not one.src_uri.startswith("results/")]
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    for page in sorted(pages, key=lambda one: one.src_uri):
        title = _title(page.content_string) or page.name
        lines.append(f"- [{title}]({page.url})")
    files.append(File.generated(config, "llms.txt", content="\n".join(lines) + "\n"))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to the root lead to the pages made of it; results stand below their code."""
    del config, files
    place = page.file.src_uri
    depth = place.count("/")
    for source, target in {**FROM_ROOT, EXAMPLES: "examples.md"}.items():
        markdown = markdown.replace(
            f"]({'../' * (depth + 1)}{source})", f"]({'../' * depth}{target})"
        )
    results = iter(_RESULTS.get(place, ()))
    return BLOCK.sub(lambda block: _with_result(block.group(0), next(results)), markdown)


def _examples():
    listing = ["# Examples", "", "Scripts and settings that stand in the repository.", ""]
    for path in sorted((ROOT / EXAMPLES).iterdir()):
        if path.suffix in (".py", ".toml"):
            listing += [
                f"## {path.name}",
                "",
                f"````{path.suffix[1:]}",
                path.read_text(),
                "````",
                "",
            ]
    return "\n".join(listing)


def _title(text):
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found and found.group(1)


def _pages():
    """Every page that is run, with its place in the site; those that take longest first."""
    found = {path: path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/*.md")}
    found |= {path: f"tutorials/{path.name}" for path in ROOT.glob("docs/tutorials/*.md")}
    found |= {ROOT / source: target for source, target in FROM_ROOT.items()}
    late = len(LONGEST_FIRST)
    names = {path: path.relative_to(ROOT).as_posix() for path in found}
    order = lambda path: LONGEST_FIRST.index(names[path]) if names[path] in LONGEST_FIRST else late  # noqa: E731
    return {path: found[path] for path in sorted(found, key=order)}


def _run_all(folder):
    """Pages of HTML that the commands of all pages wrote."""
    outs = {page: folder / str(number) for number, page in enumerate(_pages())}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [one for one in pool.map(_run, _processes(outs)) if one]
    if failures:
        raise SystemExit("\n".join(failures))
    for page, place in _pages().items():
        _RESULTS[place] = _kept(outs[page])["blocks"]
    return sorted(folder.glob("*/*.html"))


def _processes(outs):
    """What each process executes: one page with code, or all pages that show commands alone."""
    works = {page for page in outs if RUNS.search(page.read_text(encoding="utf-8"))}
    rest = {page: out for page, out in outs.items() if page not in works}
    return [*({page: outs[page]} for page in outs if page in works), rest]


def _run(outs):
    """Execute pages in one process; what it failed by, or nothing."""
    began = time.monotonic()
    for out in outs.values():
        out.mkdir()
    words = [str(one) for pair in outs.items() for one in pair]
    done = subprocess.run([sys.executable, EXECUTE, *words], capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    took, used = (
        time.monotonic() - began,
        max(_kept(one)["processor_seconds"] for one in outs.values()),
    )
    name = next(iter(outs)).relative_to(ROOT) if len(outs) == 1 else f"{len(outs)} other pages"
    sys.stderr.write(f"ran {name}: {took:.0f} s, {used:.0f} s of processors\n")
    return ""


def _kept(out):
    """What the code of a page left."""
    return json.loads((out / "results.json").read_text(encoding="utf-8"))


def _with_result(block, result):
    """A block with what it printed and drew below it."""
    parts, said = [block], result["said"].rstrip()
    if said:
        parts.append(f"```text\n{said}\n```\n")
    parts += [f'\n<figure class="drawn">{one}</figure>\n' for one in result["pictures"]]
    return "".join(parts)
