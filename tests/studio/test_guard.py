"""Nobody is answered who does not know the address or comes from elsewhere."""

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from hybridsde.studio.guard import FRAMED, POLICY, Guard, new_token
from hybridsde.studio.jobs import Jobs
from hybridsde.studio.server import MOST_ASKED, Server, bind

PORT, TOKEN = 8642, "a-token"


@pytest.fixture
def client(tmp_path):
    jobs = Jobs()
    app = Guard(Server(tmp_path, jobs).app(), TOKEN, PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client
    jobs.close()


def test_the_page_comes_with_a_policy_and_without_inline_scripts(client):
    found = client.get(f"/{TOKEN}/")
    assert found.status_code == 200
    assert found.headers["content-security-policy"] == POLICY
    assert "unsafe-inline" not in POLICY.split("style-src")[0]
    assert "unsafe-eval" not in POLICY + FRAMED
    assert "<script>" not in found.text
    assert found.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/api/state", "/wrong/", "/a-toke/", f"/{TOKEN}x/", "//"])
def test_every_request_needs_the_token(client, path):
    assert client.post(path).status_code == 403
    assert client.get(path).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1:1"},
        {"host": f"127.0.0.1.evil.example:{PORT}"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_requests_from_elsewhere_are_refused_though_they_know_the_token(client, headers):
    assert client.post(f"/{TOKEN}/api/state", headers=headers).status_code == 403


def test_requests_of_the_page_are_answered(client):
    own = {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-origin"}
    assert client.post(f"/{TOKEN}/api/state", headers=own).json()["projects"] == []
    named = {"host": f"localhost:{PORT}"}
    assert client.post(f"/{TOKEN}/api/state", headers=named).status_code == 200


def test_sockets_are_refused(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(f"/{TOKEN}/api/state"):
        pass


@pytest.mark.parametrize("name", ["server.py", "..%2fserver.py", "index.html", "%2e%2e/guard.py"])
def test_no_file_but_those_of_the_page_is_served(client, name):
    assert client.get(f"/{TOKEN}/assets/{name}").status_code == 404


def test_every_file_of_the_page_is_there(client):
    page = client.get(f"/{TOKEN}/").text
    for name in ("plotly.js", "common.js", "page.css", "studio.css", "studio.js"):
        assert f"assets/{name}" in page
    for name in ("parts.js", "home.js", "project.js", "columns.js", "run.js", "results.js"):
        assert client.get(f"/{TOKEN}/assets/{name}").status_code == 200


def test_large_and_odd_requests_end_with_one_line(client):
    large = client.post(f"/{TOKEN}/api/project", content=b" " * (MOST_ASKED + 1))
    assert large.status_code == 422
    assert "more than 1 MiB" in large.json()["error"]
    for body in (b"[]", b"{", b'{"name": 3}', b"\xff", b"[" * 100_000):
        assert client.post(f"/{TOKEN}/api/project", content=body).status_code == 422
    assert client.post(f"/{TOKEN}/api/eval", content=b"{}").status_code == 404


def test_tokens_differ_and_are_long():
    assert new_token() != new_token()
    assert len(new_token()) >= 32


def test_only_this_machine_is_listened_to():
    with bind(None, PORT) as one:
        assert one.getsockname()[0] == "127.0.0.1"
