"""The studio's server: requests of the page to actions, on this machine only."""

import json
import math
import socket
import threading
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hybridsde._errors import FitFailed, InputError
from hybridsde.studio.actions import ProjectActions
from hybridsde.studio.guard import FRAMED, HERE, Guard, new_token
from hybridsde.studio.jobs import Jobs
from hybridsde.studio.run_actions import RunActions
from hybridsde.studio.workspace import Workspace, slug

MOST_UPLOADED = 2**26
"""Bytes of a table: 64 MiB."""
MOST_ASKED = 2**20
"""Bytes of any other request."""
SCRIPTS = (
    "studio",
    "parts",
    "home",
    "project",
    "columns",
    "equations",
    "run",
    "results",
    "compare",
)
ASSETS = {
    "plotly.js": ("hybridsde.report", "assets/plotly-basic.min.js"),
    "common.js": ("hybridsde.report", "common.js"),
    "page.css": ("hybridsde.report", "page.css"),
    "studio.css": ("hybridsde.studio", "page/studio.css"),
    **{f"{name}.js": ("hybridsde.studio", f"page/{name}.js") for name in SCRIPTS},
}
"""Files of the page by name; no other is served."""
KINDS = {".js": "text/javascript", ".css": "text/css"}


class Server:
    """Routes over the actions of one folder."""

    def __init__(self, root: Path, jobs: Jobs):
        workspace, computing = Workspace(root), threading.Lock()
        self._projects = ProjectActions(workspace, jobs, computing)
        self._runs = RunActions(workspace, self._projects, computing)
        self._actions = {**self._projects.actions(), **self._runs.actions()}

    def app(self) -> Starlette:
        """Without the guard."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/assets/{name}", self._asset),
                Route("/api/upload", self._upload, methods=["POST"]),
                Route("/api/{action}", self._act, methods=["POST"]),
                Route("/report", self._report),
                Route("/export/{what}", self._export),
            ]
        )

    async def _page(self, request: Request) -> Response:
        del request
        return Response(_file("hybridsde.studio", "page/index.html"), media_type="text/html")

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return answer({"error": "There is no such file."}, 404)
        return Response(_file(*ASSETS[name]), media_type=KINDS[Path(name).suffix])

    async def _act(self, request: Request) -> Response:
        action = self._actions.get(request.path_params["action"])
        if action is None:
            return answer({"error": "The page asks for something unknown. Reload it."}, 404)

        def act(body: bytes) -> Any:
            asked = json.loads(body or b"{}")
            if not isinstance(asked, Mapping):
                raise InputError("A request must be a table. Reload the page.")
            return action(asked)

        return await _tried(request, MOST_ASKED, act)

    async def _upload(self, request: Request) -> Response:
        label = request.query_params.get("name", "")
        return await _tried(request, MOST_UPLOADED, lambda body: self._projects.upload(label, body))

    async def _report(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        try:
            text = await run_in_threadpool(self._runs.report_text, name)
        except InputError as error:
            return answer({"error": str(error)}, 422)
        return Response(text, media_type="text/html", headers={"content-security-policy": FRAMED})

    async def _export(self, request: Request) -> Response:
        name, what = request.query_params.get("name", ""), request.path_params["what"]
        try:
            content = await run_in_threadpool(self._runs.export, name, what)
        except InputError as error:
            return answer({"error": str(error)}, 422)
        kept = {"content-disposition": f'attachment; filename="{slug(name)}-{what}"'}
        return Response(content, media_type="application/octet-stream", headers=kept)


async def _tried(request: Request, most: int, work: Callable[[bytes], Any]) -> Response:
    """The answer of an action, or one line about what is wrong."""
    try:
        body = await read_body(request, most)
        return answer(await run_in_threadpool(work, body))
    except (InputError, FitFailed) as error:
        return answer({"error": str(error)}, 422)
    except (ValueError, RecursionError, MemoryError) as error:
        return answer({"error": f"This cannot be done: {error}"}, 422)


async def read_body(request: Request, most: int) -> bytes:
    """All of a request, counted while it comes: what is said of its length is not believed."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise InputError(
                f"This has more than {most / 2**20:.0f} MiB. Give the studio a smaller table, or "
                "use the command line."
            )
        parts.append(part)
    return b"".join(parts)


def answer(content: Any, code: int = 200) -> Response:
    """As JSON; numbers that JSON has not are null."""
    text = json.dumps(finite(content), allow_nan=False, separators=(",", ":"))
    return Response(text, code, media_type="application/json")


def finite(content: Any) -> Any:
    """The same without infinities and what is no number."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {str(name): finite(one) for name, one in content.items()}
    if isinstance(content, list | tuple):
        return [finite(one) for one in content]
    return content


def _file(package: str, name: str) -> bytes:
    return files(package).joinpath(name).read_bytes()


def bind(port: int | None, usual: int) -> socket.socket:
    """A socket of this machine alone: at the port that is asked for, the usual one, or any."""
    for one in (port,) if port is not None else (usual, 0):
        found = socket.socket()
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HERE[0], one))
            found.listen()  # who comes before the server is ready waits, and is not refused
            return found
        except OSError:
            found.close()
    raise InputError(f"Port {port} is taken. Choose another with --port.")


def serve(root: Path, listening: socket.socket, announce: Callable[[str], None]) -> None:
    """Answer until Ctrl-C; a fit that runs then writes its checkpoint and ends."""
    port, token = listening.getsockname()[1], new_token()
    jobs = Jobs()
    guarded = Guard(Server(root, jobs).app(), token, port)
    config = uvicorn.Config(
        guarded,
        log_level="warning",
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    announce(f"http://{HERE[0]}:{port}/{token}/")
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        jobs.close()
