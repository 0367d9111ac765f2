"""Hooks of the documentation site: code is run as it is shown, and pages of the root are shown too.

Every `python` block of a tutorial runs, in order and in one namespace; what it prints and draws
stands below it. A block that fails ends the build.
"""

import contextlib
import io
import re
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
             "SECURITY.md": "security.md"}  # fmt: skip
EXAMPLES = "examples"
BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)


def on_files(files, config):
    """Pages of the repository's root, the examples and `llms.txt`."""
    from mkdocs.structure.files import File

    for source, target in FROM_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, target, content=text))
    listing = ["# Examples", "", "Scripts and settings that stand in the repository.", ""]
    for path in sorted((ROOT / EXAMPLES).iterdir()):
        if path.suffix in (".py", ".toml"):
            listing += [f"## {path.name}", "", f"```{path.suffix[1:]}", path.read_text(), "```", ""]
    files.append(File.generated(config, "examples.md", content="\n".join(listing)))
    pages = [one for one in files.documentation_pages() if not one.src_uri.startswith("results/")]
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    for page in sorted(pages, key=lambda one: one.src_uri):
        title = _title(page.content_string) or page.name
        lines.append(f"- [{title}]({page.url})")
    files.append(File.generated(config, "llms.txt", content="\n".join(lines) + "\n"))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to the root lead to the pages made of it; tutorials run."""
    del config, files
    depth = page.file.src_uri.count("/")
    for source, target in {**FROM_ROOT, EXAMPLES: "examples.md"}.items():
        markdown = markdown.replace(
            f"]({'../' * (depth + 1)}{source})", f"]({'../' * depth}{target})"
        )
    if page.file.src_uri.startswith("tutorials/"):
        markdown = _run(markdown, page.file.src_uri)
    return markdown


def _title(text):
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found and found.group(1)


def _run(markdown, name):
    """A page with the results of its blocks below them."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    namespace = {"__name__": "__docs__"}

    def with_result(block):
        said, pictures = io.StringIO(), []
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(compile(block.group(1), name, "exec"), namespace)
            except Exception:
                raise SystemExit(f"{name}: a block fails.\n{traceback.format_exc()}") from None
        for number in plt.get_fignums():
            buffer = io.StringIO()
            plt.figure(number).savefig(buffer, format="svg", bbox_inches="tight", transparent=True)
            svg = buffer.getvalue()
            pictures.append(f'<figure class="drawn">{svg[svg.index("<svg") :]}</figure>')
        plt.close("all")
        printed = said.getvalue().rstrip()
        parts = [block.group(0)]
        if printed:
            parts.append(f"```text\n{printed}\n```\n")
        parts += [f"\n{one}\n" for one in pictures]
        return "".join(parts)

    return BLOCK.sub(with_result, markdown)
