"""Templates of this folder, filled in; the result is one file that needs no network."""

import json
import math
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup


def render_template(template: str, **values: Any) -> str:
    """A template as text. What is not marked as safe is escaped."""
    folder = files("hybridsde.report")
    text = folder.joinpath(template).read_text(encoding="utf-8")
    style = Markup(folder.joinpath("page.css").read_text(encoding="utf-8"))
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["number"] = number
    environment.filters["embedded"] = embedded
    environment.filters["percent"] = percent
    environment.filters["code"] = code
    first = folder.joinpath("head.html").read_text(encoding="utf-8")
    head = Markup(environment.from_string(first).render(style=style, title=values["title"]))
    return environment.from_string(text).render(head=head, **values)


def number(value: float | None) -> str:
    """Three digits; a dash where there is nothing to say."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.3g}"


def percent(share: float | None) -> str:
    """A share in hundredths."""
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.0f} %"


def code(text: str) -> Markup:
    """Words between backticks as code."""
    parts = text.split("`")
    marked = (
        Markup("<code>{}</code>").format(one) if k % 2 else one for k, one in enumerate(parts)
    )
    return Markup("").join(marked)


def embedded(content: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def asset(name: str) -> Markup:
    """A file of this folder as it is, for a script element."""
    return Markup(files("hybridsde.report").joinpath(name).read_text(encoding="utf-8"))
