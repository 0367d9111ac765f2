"""Input that somebody may send on purpose, from a seed."""

import json
import random
import string
from pathlib import Path

EQUATIONS = (
    "dx = -k*x + u", "dy = x*y - rho*z", "dz/dt = sin(3*t)/(1 + x^2)", "dx = min(x, y, 3)^-2",
    "dv = -g/l*sin(theta) - c*v*abs(v)", "dx = " + " + ".join(["x*y"] * 30),
)  # fmt: skip
PIECES = (
    *"+-*/^(),=._ \t\n0123456789exyzt", "**", "sin(", "exp(", "log(", "sqrt(", "max(", "1e999",
    "1e-999", "9^9^9", "pi", "x_1", "lambda", "__import__('os')", "d", "dt", "((((", "))))", "\0",
    "\x1b[31m", "é", "数", "\u202e", "{0}", "%s", "${HOME}", "//", "--", "nan", "inf", "True",
    "x" * 300, "(" * 70 + "x" + ")" * 70, "-" * 200 + "x", "x+" * 400,
)  # fmt: skip
CELLS = (
    "", " ", "nan", "NaN", "inf", "-inf", "1e400", "-1e39", "1e17", "1e-300", "0", "-0", "1,5",
    "1.5.2", "0x10", "1_000", "١٢٣", "'",
    '"', '""', '"a\nb"', "=1+1", "@SUM(A1)", "\x00", "\x1b[2J",
    "\u202e1", "2020-01-31", "31/01/2020", "01/02/2020", "20200131", "now", "today",
    "2020-01-01T00:00:00Z",
    "2020-13-45", "9" * 5000, "x" * 140_000, "None", "True", "1e5", "+3", "#", ";", "\t", "|",
)  # fmt: skip
TABLES = (
    (
        "id,t,x,v\n"
        + "".join(f"{i},{k / 10},{i + k % 3},{k * k % 7}\n" for i in range(3) for k in range(9)),
        {"id": "id"},
    ),
    (
        "# made by hand\nt;x;v\n" + "".join(f"{k};{k % 5};{k % 3}\n" for k in range(12)),
        {"separator": ";"},
    ),
    (
        "time,x,v\n" + "".join(f"2020-01-{k:02d} 12:00,{k % 5},{k % 3}\n" for k in range(1, 20)),
        {"time": "time", "unit": "h"},
    ),
    (
        "id,date,x,v\n" + "".join(f"a,{k:02d}/03/2020,{k % 5},{k % 3}\n" for k in range(1, 28)),
        {"id": "id", "time": "date", "unit": "day"},
    ),
    (
        'name,t,x,v\n"a, b",0,1,2\n"a, b",1,2,1\n"c d",0,1,1\n"c d",1,3,2\n',
        {"id": "name"},
    ),
    (
        "t,what,value\n" + "".join(f"{k // 2},{'xv'[k % 2]},{k % 5}\n" for k in range(20)),
        {"quantity": "what", "value": "value"},
    ),
)
"""Each with what its columns mean beside x, v and t."""
SETTINGS = (
    '[data]\nfiles = "d.csv"\nid = "id"\nstates = ["x", "v"]\n'
    '[physics]\nequations = ["dx = v", "dv = -k*x"]\nparameters = { k = 4.0 }\n'
    "[model]\nhidden = [8, 8]\ndiffusion = 0.1\n[train]\nepochs = 2\nseed = 1\n"
    "[forecast]\ndraws = 10\n",
    '[data]\nfiles = ["a.csv", "b*.csv"]\nstates = ["x"]\nhidden_states = ["z"]\ninputs = ["u"]\n'
    'bounds = { x = [0, inf] }\npositive = ["z"]\ntest = ["a"]\n[start]\nz = [0.1, 1]\n'
    '[physics]\nequations = ["dx = z*u"]\nexact = ["x"]\n'
    '[model]\nlearned = ["library", "process"]\n',
)
VALUES = (
    "-1", "0", "1e39", "-inf", "inf", "nan", "1000000000000", '""', '"x"', "[]", "{}", "true",
    "[[[[]]]]", "1979-05-27", '"\\u001b[31m"', '"' + "x" * 300 + '"', "9" * 400, '["x", "x"]',
    '{ x = [5, 1] }', "''",    '"../../etc/passwd"', '"$HOME"', '"file.py:f"', '["dx = 1/0"]',
    '["dx = y"]', '"learn"',
    "3.5", "[1e39]",
)  # fmt: skip


def mutated(text: str, pieces: tuple[str, ...], rng: random.Random) -> str:
    """A text in which something was inserted, removed, repeated or exchanged, a few times."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        place = rng.randrange(len(text) + 1)
        end = min(len(text), place + rng.choice((0, 0, 1, 2, 10)))
        if rng.random() < 0.15:
            text = text[:place] + text[place:end] * rng.choice((2, 3, 50)) + text[end:]
        else:
            text = text[:place] + rng.choice((*pieces, "")) + text[end:]
    return text


def equation(rng: random.Random) -> str:
    """An equation, or what is left of one."""
    if rng.random() < 0.1:
        return "".join(rng.choice(PIECES) for _ in range(rng.randrange(40)))
    if rng.random() < 0.05:
        return "".join(rng.choice(string.printable) for _ in range(rng.randrange(200)))
    return mutated(rng.choice(EQUATIONS), PIECES, rng)


def table(rng: random.Random) -> tuple[bytes, dict[str, str]]:
    """A table with cells, lines and columns that should not be there, and what they mean."""
    text, meaning = rng.choice(TABLES)
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind, row = rng.random(), rng.randrange(len(lines))
        if kind < 0.5:
            cells = lines[row].split(",")
            cells[rng.randrange(len(cells))] = rng.choice(CELLS)
            lines[row] = ",".join(cells)
        elif kind < 0.6:
            lines.insert(row, rng.choice(lines))
        elif kind < 0.7:
            del lines[row]
        elif kind < 0.75:
            rng.shuffle(lines)
        else:
            lines[row] = mutated(lines[row], CELLS, rng)
        lines = lines or [""]
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        place = rng.randrange(len(content) + 1)
        content = content[:place] + rng.randbytes(3) + content[place + 1 :]
    return content, meaning


def settings(rng: random.Random) -> bytes:
    """A settings file with wrong values, keys and syntax."""
    lines: list[str] = list(rng.choice(SETTINGS).split("\n"))
    for _ in range(rng.choice((1, 1, 2, 3))):
        row = rng.choice([n for n, line in enumerate(lines) if "=" in line] or [0])
        key = lines[row].partition("=")[0].strip() or "x"
        if rng.random() < 0.6:
            lines[row] = f"{key} = {rng.choice(VALUES)}"
        elif rng.random() < 0.5:
            lines.insert(row, rng.choice(lines))
        else:
            lines[row] = mutated(lines[row], (*VALUES, *PIECES), rng)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def tamper(folder: Path, rng: random.Random, outside: Path) -> str:
    """Damage a run folder in one way; in words, which one."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())
    path = rng.choice(files)
    kind = rng.choice(("bytes", "cut", "gone", "link", "folder", "json", "json", "json", "text"))
    content = path.read_bytes()
    if kind == "bytes":
        place = rng.randrange(len(content))
        path.write_bytes(content[:place] + rng.randbytes(4) + content[place + 4 :])
    elif kind == "cut":
        path.write_bytes(content[: rng.randrange(len(content))])
    elif kind == "text":
        path.write_bytes(rng.choice(CELLS).encode() * rng.choice((0, 1, 30)))
    elif kind in ("gone", "link", "folder"):
        path.unlink()
        if kind == "link":
            path.symlink_to(outside)
        elif kind == "folder":
            path.mkdir()
    else:
        path = folder / "run.json"
        path.write_text(json.dumps(_changed(json.loads(path.read_text()), rng)))
    return f"{kind} {path.name}"


ODD = (
    None,
    -1,
    0,
    1e400,
    "x",
    "",
    [],
    {},
    [[]],
    True,
    "x" * 1000,
    10**30,
    {"kind": "Fixed"},
    ["a"],
)


def _changed(content, rng: random.Random):
    """The same JSON with one thing in it replaced or removed."""
    if isinstance(content, dict) and content and rng.random() < 0.85:
        name = rng.choice(list(content))
        if rng.random() < 0.1:
            return {key: one for key, one in content.items() if key != name}
        return {**content, name: _changed(content[name], rng)}
    if isinstance(content, list) and content and rng.random() < 0.7:
        place = rng.randrange(len(content))
        return [*content[:place], _changed(content[place], rng), *content[place + 1 :]]
    return rng.choice(ODD)
