"""OpenTelemetry: a collector of our own gets what runs leave, and a bad one stops nothing."""
import http.server
import json
import queue
import threading

import pytest

from events import wait_in
from harness import WAIT, finish


@pytest.fixture
def collector():
    """Requests as (path, headers, body), as they come."""
    got = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            got.put((self.path, self.headers, json.loads(body)))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    got.endpoint = f"http://127.0.0.1:{server.server_port}"
    yield got
    server.shutdown()
    server.server_close()


def attributes(owner):
    return {item["key"]: item["value"] for item in owner["attributes"]}


def test_a_command_becomes_a_span(place, collector):
    ran = place.shell("exit 3", env={
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint + "/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-token=a%20b, x-other=c",
        "OTEL_SERVICE_NAME": "agent",
        "TRACEPARENT": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    })
    assert ran.returncode == 3 and ran.stderr == ""
    path, headers, body = collector.get(timeout=WAIT)
    assert path == "/v1/traces"
    assert headers["Content-Type"] == "application/json"
    assert headers["x-token"] == "a b" and headers["x-other"] == "c"
    [resource] = body["resourceSpans"]
    assert attributes(resource["resource"])["service.name"] == {"stringValue": "agent"}
    [span] = resource["scopeSpans"][0]["spans"]
    assert span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert span["parentSpanId"] == "00f067aa0ba902b7"
    assert int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"])
    assert attributes(span)["cordon.exit_code"] == {"intValue": "3"}
    assert span["status"] == {"code": 2}
    assert attributes(span)["process.command_args"]["arrayValue"]["values"][0] == \
        {"stringValue": "sh"}


def test_a_long_command_keeps_its_words(place, collector):
    tail = place.home / ".config/cordon/audit.tail"
    tail.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    running = place.start("run", "--", "cat",
                          env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint})
    wait_in(tail.parent, lambda: tail.exists() and " begin " in tail.read_text(), WAIT)
    finish(running, 0)
    _, _, body = collector.get(timeout=WAIT)
    [span] = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert "process.command_args" in attributes(span)
    assert int(span["endTimeUnixNano"]) > int(span["startTimeUnixNano"])


def test_a_denial_becomes_a_log_record(place, collector):
    place.shell(f"echo x > {place.outside}/file && true", "--profile", "read-only",
                env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint})
    bodies = dict((path, body) for path, _, body in (collector.get(timeout=WAIT) for _ in "12"))
    [record] = bodies["/v1/logs"]["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    [span] = bodies["/v1/traces"]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert record["body"] == {"stringValue": "cordon.denied"}
    assert attributes(record)["cordon.path"] == {"stringValue": f"{place.outside}/file"}
    assert record["traceId"] == span["traceId"] and record["spanId"] == span["spanId"]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "nonsense", "ftp://127.0.0.1/", ""])
def test_a_collector_that_is_not_there_stops_nothing(place, endpoint):
    ran = place.shell("exit 3", env={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
    assert ran.returncode == 3 and ran.stderr == ""


def test_a_collector_that_never_answers_stops_nothing(place):
    import socket
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        ran = place.shell("exit 3", env={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
                                         "OTEL_EXPORTER_OTLP_TIMEOUT": "60000"})
        assert ran.returncode == 3  # while the sender waits
        server.settimeout(WAIT)
        server.accept()[0].close()  # and is let go


def test_without_an_endpoint_and_without_audit_nothing_is_sent(place, collector):
    place.run("--no-audit", "--", "true",
              env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint})
    for off in ({"OTEL_SDK_DISABLED": "true"},
                {"OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}):
        place.shell("exit 4", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint} | off)
    place.shell("exit 3", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint})
    _, _, body = collector.get(timeout=WAIT)
    [span] = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert attributes(span)["cordon.exit_code"] == {"intValue": "3"}
