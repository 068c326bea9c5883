"""Change layers on the wire: layer/..., and `layer` of what runs commands and touches files."""
import base64
import json
import os
import re
import signal

import pytest
from served import Server, exec_result, exec_run, uri, workspace_write
from ws_client import RpcError


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def create(client, **params):
    return client.call("layer/create", {"sandbox": workspace_write(client.cwd), "cwd": uri(client.cwd), **params})["layerId"]


def run(client, layer, text, name="r", **params):
    return exec_result(client, exec_run(client, name, text, sandbox=None, layer={"layerId": layer}, **params))


def changes(client, layer, **params):
    return client.call("layer/changes", {"layerId": layer, **params})


def kinds(client, layer, **params):
    return {os.path.basename(one["path"]): one["kind"] for one in changes(client, layer, **params)["changes"]}


def test_a_command_writes_to_the_layer_and_not_to_the_files(place, client):
    (place.ws / "old").write_text("one\n")
    layer = create(client, name="mine")
    result = run(client, layer, "echo two > old; echo new > new")
    assert result["exitCode"] == 0, result
    assert (place.ws / "old").read_text() == "one\n" and not (place.ws / "new").exists()
    assert result["changes"] == {"layerId": layer, "stepId": 1, "shared": False, "added": 1, "modified": 1, "deleted": 0}
    assert kinds(client, layer) == {"old": "M", "new": "A"}
