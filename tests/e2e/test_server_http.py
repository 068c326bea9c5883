"""http/request and the environment methods of the exec server."""
import base64
import http.server
import json
import os
import socket
import threading

import pytest

from file_server import Server, b64, uri
from ws_client import RpcError


class Handler(http.server.BaseHTTPRequestHandler):
    """What the tests ask for, by path."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/echo":
            seen = {"method": self.command, "body": body.decode(),
                    "headers": [[name.lower(), value] for name, value in self.headers.items()]}
            self.answer(200, json.dumps(seen).encode(), X_Two="a")
        elif self.path == "/moved":
            self.answer(302, Location="/echo")
        elif self.path == "/large":
            self.answer(200, self.server.large)
        elif self.path == "/slow":
            self.send_response(200)
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"one")
            self.wfile.flush()
            self.server.go_on.wait(60)
            self.wfile.write(b"two")
        elif self.path == "/torn":
            self.send_response(200)
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"one")
            self.close_connection = True
        else:
            self.answer(404)

    do_GET = do_POST = do_PUT = do_DELETE = do_any


@pytest.fixture
def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.go_on = threading.Event()
    server.large = os.urandom(1 << 16) * 100 + b"!"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(place):
    with Server(place, env={"SOME_TOKEN": "secret", "http_proxy": "http://127.0.0.1:1"}).client() as client:
        yield client


def fetch(client, url, method="GET", **more):
    answer = client.call("http/request", {"method": method, "url": url, "requestId": "r", **more})
    return answer["status"], base64.b64decode(answer["bodyBase64"]), answer["headers"]


def refused(client, **params):
    with pytest.raises(RpcError) as caught:
        client.call("http/request", {"requestId": "r", "method": "GET", **params})
    return caught.value.code, caught.value.message


def test_a_request_is_made_as_it_says(client, web):
    status, body, headers = fetch(client, f"{web.url}/echo", "PUT", bodyBase64=b64(b"data"), headers=[
        {"name": "X-One", "value": "1"}, {"name": "x-one", "value": "2"},
        {"name": "Authorization", "value": "Bearer ", "valueEnvVar": "SOME_TOKEN"}])
    seen = json.loads(body)
    assert status == 200
    assert {"name": "x-two", "value": "a"} in headers
    assert (seen["method"], seen["body"]) == ("PUT", "data")
    assert [value for name, value in seen["headers"] if name == "x-one"] == ["1", "2"]
    assert ["authorization", "Bearer secret"] in seen["headers"]
    assert not {"content-type", "expect"} & {name for name, _ in seen["headers"]}


def test_a_connection_has_so_many_requests_at_once(client):
    """Each is a program in a sandbox."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        for i in range(32):
            client.request("http/request", {"method": "GET", "url": url, "requestId": str(i)})
        code, message = refused(client, url=url)
        assert (code, message) == (-32600, "at most 32 http/requests may run per connection")


def test_loopback_is_not_for_the_proxy_and_everything_else_is(client, web):
    assert fetch(client, f"{web.url}/echo")[0] == 200
    code, message = refused(client, url="http://example.invalid/")
    assert code == -32603 and message.startswith("http/request failed: ") and "port 1 " in message


def test_redirects(client, web):
    assert json.loads(fetch(client, f"{web.url}/moved")[1])["method"] == "GET"
    status, body, headers = fetch(client, f"{web.url}/moved", redirectPolicy="stop")
    assert (status, body) == (302, b"")
    assert {"name": "location", "value": "/echo"} in headers
    assert json.loads(fetch(client, f"{web.url}/moved", "POST", bodyBase64=b64(b"x"))[1])["method"] == "GET"


def test_a_large_answer_is_whole(client, web):
    assert fetch(client, f"{web.url}/large")[1] == web.large
    assert fetch(client, f"{web.url}/large", streamResponse=True)[1] == b""
    body, seq = b"", 0
    while True:
        delta = client.event("http/request/bodyDelta")["params"]
        seq += 1
        assert (delta["requestId"], delta["seq"]) == ("r", seq)
        body += base64.b64decode(delta["deltaBase64"], validate=True)
        if delta["done"]:
            break
    assert delta["deltaBase64"] == "" and delta["error"] is None
    assert body == web.large


def test_a_stream_comes_while_it_is_written(client, web):
    assert fetch(client, f"{web.url}/slow", streamResponse=True)[0] == 200
    assert client.event("http/request/bodyDelta")["params"]["deltaBase64"] == b64(b"one")
    assert refused(client, url=f"{web.url}/echo", streamResponse=True)[0] == -32602
    assert fetch(client, f"{web.url}/echo")[0] == 200  # others are not held up
    web.go_on.set()
    rest = [client.event("http/request/bodyDelta")["params"] for _ in range(2)]
    assert [part["deltaBase64"] for part in rest] == [b64(b"two"), ""]
    assert fetch(client, f"{web.url}/echo", streamResponse=True)[0] == 200  # the name is free


def test_a_torn_answer_is_an_error(client, web):
    code, message = refused(client, url=f"{web.url}/torn")
    assert code == -32603 and message.startswith("http/request failed: ")
    fetch(client, f"{web.url}/torn", streamResponse=True)
    while not (delta := client.event("http/request/bodyDelta")["params"])["done"]:
        pass
    assert delta["error"]


def test_time_is_limited(client, web):
    code, message = refused(client, url=f"{web.url}/slow", timeoutMs=50)
    assert code == -32603 and message.startswith("http/request failed: ")


def test_what_is_wrong_is_refused(client, web):
    assert refused(client, url="ftp://127.0.0.1/")[0] == -32602
    assert refused(client, url=web.url, method="GET / HTTP/1.1\r\nX: y")[0] == -32602
    for header in ({"name": "X", "value": "a\r\nY: b"}, {"name": "X Y", "value": ""},
                   {"name": "X", "value": "", "valueEnvVar": "NOT_SET"}):
        assert refused(client, url=web.url, headers=[header])[0] == -32602
    assert refused(client, url=web.url, bodyBase64="!")[0] in (-32602, -32603)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert refused(client, url=f"http://127.0.0.1:{port}/")[0] == -32603


def test_a_client_that_goes_ends_its_requests(place, web):
    server = Server(place)
    with server.client() as client:
        fetch(client, f"{web.url}/slow", streamResponse=True)
    with server.client() as client:
        assert fetch(client, f"{web.url}/echo")[0] == 200


def test_the_environment_is_told(place):
    server = Server(place, env={"SHELL": "/bin/sh"})
    with server.client() as client:
        info = client.call("environment/info")
        assert client.call("environment/status") == {"status": "ready"}
    assert info["shell"] == {"name": "sh", "path": "/bin/sh"}
    assert (info["cwd"], info["userHomeDir"]) == (uri(place.ws), uri(place.home))
    assert (info["tempDir"], info["temporaryDirectories"]) == (uri(place.tmp), [uri(place.tmp)])
    assert info["platformOs"] == "linux" and info["capabilities"]["fsWatchMissing"]


def config(client, *paths, requirements=()):
    return client.call("environmentConfig/read", {"cwd": "file:///", "configPaths": list(paths),
                                                  "requirementsPaths": list(requirements)})


def test_only_asked_configuration_is_told(place):
    place.config('model = "m"\n[mcp_servers.a]\ncommand = "x \\"y\\""\nargs = ["b", 1, true]\n'
                 '[other]\nkey = "private"\nwhen = 1.5\n', "home/.codex/config.toml")
    with Server(place).client() as client:
        answer = config(client, ["mcp_servers"], ["mcp_servers", "a"], ["none"])
        assert answer["codexHomeDir"] == uri(place.home / ".codex")
        layer, = answer["config"]["layers"]
        assert layer["baseDir"] == uri(place.home / ".codex")
        assert layer["toml"] == ('"mcp_servers" = {"a" = {"command" = "x \\u0022y\\u0022", '
                                 '"args" = ["b", 1, true]}}\n')
        assert answer["requirements"] == {"layers": [], "cloudInsertionIndex": 0}
        for wrong in ([], [[]]):
            with pytest.raises(RpcError) as caught:
                config(client, *wrong)
            assert caught.value.code == -32602
        with pytest.raises(RpcError, match="URI"):
            client.call("environmentConfig/read", {"cwd": "/plain", "configPaths": [["other"]],
                                                   "requirementsPaths": []})
        with pytest.raises(RpcError) as caught:
            config(client, ["other"])
        assert caught.value.code == -32603 and "line 7" in caught.value.message
