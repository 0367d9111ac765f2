"""Starts the studio of an installed hybridsde, asks it for its page and its example, and ends it.

`python tests/smoke/answers.py`, by the Python of the environment that is tried.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import Request, urlopen


def main() -> None:
    """Ends with an error where the studio does not answer."""
    command = str(Path(sys.executable).with_name("hybridsde"))
    with tempfile.TemporaryDirectory() as folder:
        words = [command, "studio", folder, "--no-open"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as studio:
            assert studio.stdout is not None
            try:
                address = next(line.strip() for line in studio.stdout if line.startswith("http:"))
                page = urlopen(address).read().decode()
                assert "<title>" in page, page
                asked = Request(f"{address}api/example", b"{}", {"Origin": origin(address)})
                assert json.load(urlopen(asked)) == {"project": "predators/settings.toml"}
            finally:
                studio.terminate()
    sys.stdout.write("The studio answers.\n")


def origin(address: str) -> str:
    """Of the page itself."""
    return "/".join(address.split("/")[:3])


if __name__ == "__main__":
    main()
