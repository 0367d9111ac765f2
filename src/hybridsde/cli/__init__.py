"""Commands: thin verbs over the library."""

from hybridsde.cli import certify as _certify  # noqa: F401
from hybridsde.cli import compare as _compare  # noqa: F401
from hybridsde.cli import demo as _demo  # noqa: F401
from hybridsde.cli import forecasts as _forecasts  # noqa: F401
from hybridsde.cli import project as _project  # noqa: F401
from hybridsde.cli import results as _results  # noqa: F401
from hybridsde.cli import scale as _scale  # noqa: F401
from hybridsde.cli import studio as _studio  # noqa: F401
from hybridsde.cli import update as _update  # noqa: F401
from hybridsde.cli.app import app as app
