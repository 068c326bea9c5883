"""Files that somebody made hard to open, a pipe that nobody writes or a file with a lease that nobody gives
up, where Cordon looks by itself: no server waits for them."""
import fcntl
import os
import signal

import pytest

from served import Server, exec_run, uri

BEFORE_A_COMMAND = (".git", ".git/HEAD", ".git/config", ".git/index", ".git/commondir", ".git/info/attributes",
                    ".gitmodules", ".gitattributes", ".codex/rules/own.rules", ".cordon", ".cordon-patch")
OF_THE_PERSON = (".gitconfig", ".config/git/config", ".config/cordon/config.toml",
                 ".config/cordon/rules/default.rules", ".codex/rules/default.rules")


@pytest.fixture
def client(place):
    for name in (".codex", ".config/git", ".config/cordon/rules", ".codex/rules"):
        (place.home / name).mkdir(parents=True, exist_ok=True)
    with Server(place, env={"CODEX_HOME": f"{place.home}/.codex"}) as server:
        with server.client() as client:
            yield client


def repository(place):
    for name in (".git/info", ".git/objects", ".git/refs", ".codex/rules"):
        (place.ws / name).mkdir(parents=True, exist_ok=True)
    (place.ws / ".git/HEAD").write_text("ref: refs/heads/main\n")


def is_answered(client, *calls):
    """All of them, with whatever, and so is the next one."""
    for method, params in calls:
        client.answer(client.request(method, params))
    client.answer(exec_run(client, "it", "true"))
    assert client.call("environment/status", {}) == {"status": "ready"}


def calls_on(path):
    return (("environmentConfig/read", {"cwd": uri(path.parent), "configPaths": [["x"]],
                                        "requirementsPaths": [["x"]]}),
            ("fs/readFile", {"path": uri(path)}))


@pytest.mark.parametrize("name", BEFORE_A_COMMAND)
def test_a_pipe_in_the_workspace(place, client, name):
    if name != ".git":
        repository(place)
    path = place.ws / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    is_answered(client, *calls_on(path))


@pytest.mark.parametrize("name", OF_THE_PERSON)
def test_a_pipe_in_the_home(place, client, name):
    os.mkfifo(place.home / name)
    is_answered(client, *calls_on(place.home / name))


def test_a_pipe_in_place_of_the_configuration_that_is_asked_for(place, client):
    os.mkfifo(place.home / ".codex/config.toml")
    is_answered(client, *calls_on(place.home / ".codex/config.toml"))


def test_a_lease_that_is_not_given_up(place, client):
    repository(place)
    path = place.ws / ".git/config"
    path.write_text("[core]\n")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with open(path, "r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        refused = client.answer(exec_run(client, "it", "true"))
        said = refused["error"]["message"]
        assert ".git/config" in said and "Resource temporarily unavailable" in said
    signal.signal(signal.SIGIO, before)
    is_answered(client)


def test_an_index_that_is_split_in_a_ring(place, client):
    """git's own is split once; its hashes are not looked at, so a file can name any."""
    repository(place)
    split = b"DIRC" + (2).to_bytes(4) + bytes(4) + b"link" + (20).to_bytes(4) + b"\xab" * 20 + bytes(20)
    for name in ("index", "sharedindex." + "ab" * 20):
        (place.ws / ".git" / name).write_bytes(split)
    is_answered(client)
    ran = place.cordon("run", "--", "true")
    assert ran.returncode == 125 and "split once more" in ran.stderr
