"""fs/ methods of the exec server over its WebSocket, without a sandbox and inside one."""
import base64
import contextlib
import json
import os
import select
import signal
import threading

import pytest

from file_server import Server, b64, entry, narrow, sandbox, uri
from harness import BUILD, TOP, WAIT
from ws_client import RpcError

FILES = BUILD / "src/files/cordon-files"
SAMPLES = TOP / "tests/cases/server/fs-calls.jsonl"


@pytest.fixture
def server(place):
    return Server(place)


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def refused(client, method, params):
    """(code, message) of the error that comes."""
    with pytest.raises(RpcError) as caught:
        client.call(method, params)
    return caught.value.code, caught.value.message


def content(client, path, **more):
    answer = client.call("fs/readFile", {"path": uri(path), **more})
    return base64.b64decode(answer["dataBase64"], validate=True)


def sample_tree(top):
    (top / "d/sub/.hid").mkdir(parents=True)
    for name, text in {"f": "hi\n", "sp ace \u00e9.txt": "hi", "d/a.txt": "a", "d/sub/b.txt": "",
                       "d/sub/.hid/c": ""}.items():
        (top / name).write_text(text)
    for name, target in {"lnk": "f", "dl": "d", "dang": "nowhere"}.items():
        (top / name).symlink_to(target)
    os.mkfifo(top / "fifo")


def without_varying(method, answer):
    """Times, sizes of folders, the order of folders, and what we add to errors."""
    answer = {key: value for key, value in answer.items()
              if key not in ("createdAtMs", "modifiedAtMs", "data")}
    if answer.get("isDirectory"):
        del answer["size"]
    if method == "fs/readDirectory" and "entries" in answer:
        answer["entries"] = sorted(answer["entries"], key=str)
    if "dataBase64: " in answer.get("message", ""):  # what is wrong with it, we say in our words
        answer["message"] = answer["message"].partition("dataBase64: ")[0]
    return answer


def answer_of(client, method, params):
    answer = client.answer(client.request(method, params))
    return without_varying(method, answer.get("result", answer.get("error")))


def test_answers_are_those_of_the_original(place, client):
    sample_tree(place.ws)
    blocks = {"<1 MiB>": b64(b"z" * 2**20), "<1 MiB and 1>": b64(b"z" * (2**20 + 1))}
    for line in SAMPLES.read_text().splitlines():
        method, params, wanted = json.loads(
            line.replace("~p", str(place.ws)).replace("~", uri(place.ws)))
        params["chunk"] = blocks.get(params.get("chunk"), params.get("chunk", ""))
        if params.get("handleId") == "k126":  # the samples leave these out
            for number in range(2, 126):
                client.call("fs/open", {**params, "handleId": f"k{number}"})
        if "file:///proc/version" in line and os.geteuid() != 0:  # the samples were taken as root
            wanted = {"code": -32600, "message": "Permission denied (os error 13)"}
        assert answer_of(client, method, params) == without_varying(method, wanted), line


def test_every_method_works_in_a_sandbox(place, client):
    box = {"sandbox": sandbox(place)}

    def call(method, **params):
        return client.call(f"fs/{method}", {**params, **box})

    ws = uri(place.ws)
    assert call("createDirectory", path=f"{ws}/a/b") == {}
    assert call("writeFile", path=f"{ws}/a/f", dataBase64=b64(b"hi\n")) == {}
    assert call("readFile", path=f"{ws}/a/f") == {"dataBase64": b64(b"hi\n")}
    assert call("getMetadata", path=f"{ws}/a/f")["size"] == 3
    (place.ws / "lnk").symlink_to("a/f")
    assert call("canonicalize", path=f"{ws}/lnk") == {"path": f"{ws}/a/f"}
    assert call("copy", sourcePath=f"{ws}/a", destinationPath=f"{ws}/c", recursive=True) == {}
    assert {e["fileName"] for e in call("readDirectory", path=f"{ws}/c")["entries"]} == {"b", "f"}
    walked = call("walk", path=f"{ws}/c", options={
        "maxDepth": 3, "maxDirectories": 9, "maxEntries": 9, "followDirectorySymlinks": False})
    assert walked == {"entries": [{"path": f"{ws}/c/b", "kind": "directory"},
                                  {"path": f"{ws}/c/f", "kind": "file"}],
                      "errors": [], "truncated": False}
    assert call("remove", path=f"{ws}/c") == {}
    assert not (place.ws / "c").exists()
    assert call("open", handleId="r", path=f"{ws}/a/f") == {"handleId": "r"}
    assert client.call("fs/readBlock", {"handleId": "r", "offset": 1, "len": 9}) == {
        "chunk": b64(b"i\n"), "eof": True}
    assert call("open", handleId="w", path=f"{ws}/new", mode="replace") == {"handleId": "w"}
    client.call("fs/writeBlock", {"handleId": "w", "offset": 2, "chunk": b64(b"x")})
    client.call("fs/close", {"handleId": "w"})
    assert (place.ws / "new").read_bytes() == b"\0\0x"


def test_the_kernel_refuses_what_the_sandbox_does_not_allow(place, client):
    secret = place.outside / "secret"
    secret.write_text("secret")
    os.mkdir(place.outside / "dir")
    box = {"sandbox": sandbox(place, entry(secret, "deny"))}
    out = uri(place.outside)
    eacces = (-32600, "Permission denied (os error 13)")
    erofs = (-32603, "Read-only file system (os error 30)")
    assert refused(client, "fs/readFile", {"path": uri(secret), **box}) == eacces
    assert refused(client, "fs/open", {"handleId": "x", "path": uri(secret), **box}) == eacces
    assert refused(client, "fs/copy", {"sourcePath": uri(secret), "recursive": False,
                                       "destinationPath": uri(place.ws / "x"), **box}) == eacces
    for method, params in {
            "fs/writeFile": {"path": f"{out}/new", "dataBase64": ""},
            "fs/createDirectory": {"path": f"{out}/new"},
            "fs/remove": {"path": f"{out}/dir"},
            "fs/open": {"handleId": "x", "path": f"{out}/new", "mode": "replace"},
            "fs/copy": {"sourcePath": "file:///etc/passwd", "destinationPath": f"{out}/new",
                        "recursive": False}}.items():
        assert refused(client, method, {**params, **box}) == erofs, method
    assert sorted(os.listdir(place.outside)) == ["dir", "secret"]
    assert content(client, secret) == b"secret"  # without a sandbox nobody holds us back


def test_nothing_can_be_read_but_what_was_granted(place, client):
    (place.ws / "f").write_text("mine")
    (place.outside / "f").write_text("not yours")
    is_static = b"__asan_init" not in FILES.read_bytes()  # with sanitizers it needs libraries
    needs = [] if is_static else [entry(":minimal", "read")]
    box = {"sandbox": narrow(place, entry(":project_roots", "read"), *needs)}
    assert content(client, place.ws / "f", **box) == b"mine"
    assert refused(client, "fs/readFile", {"path": uri(place.outside / "f"), **box})[0] == -32004
    if is_static:
        assert refused(client, "fs/readFile", {"path": "file:///etc/passwd", **box})[0] == -32004
    assert (FILES.parent / "libfiles.a").exists()  # beside the program, which can be read itself
    assert refused(client, "fs/getMetadata", {"path": uri(FILES.parent / "libfiles.a"),
                                              **box})[0] == -32004
    assert refused(client, "fs/writeFile", {"path": uri(place.ws / "f"), "dataBase64": "",
                                            **box}) == (-32603, "Read-only file system (os error 30)")


def test_links_lead_nowhere_else(place, client):
    secret = place.outside / "secret"
    secret.write_text("secret")
    (place.ws / "out").symlink_to(place.outside)
    (place.ws / "leak").symlink_to(secret)
    box = {"sandbox": sandbox(place, entry(secret, "deny"))}
    assert refused(client, "fs/readFile", {"path": uri(place.ws / "leak"), **box})[0] == -32600
    assert refused(client, "fs/writeFile", {"path": uri(place.ws / "out/x"), "dataBase64": "",
                                            **box})[0] == -32603
    assert refused(client, "fs/remove", {"path": uri(place.ws / "out/secret"), **box})[0] in (
        -32600, -32603)
    client.call("fs/remove", {"path": uri(place.ws / "out"), **box})  # the link itself
    assert secret.read_text() == "secret"


def test_a_link_swapped_in_is_not_followed(place, client):
    """Somebody replaces a folder by a link to elsewhere, and back, while files are read."""
    (place.ws / "real").mkdir()
    (place.ws / "real/f").write_text("mine")
    (place.outside / "f").write_text("secret")
    (place.ws / "link").symlink_to(place.outside)
    stop = threading.Event()

    def exchange():
        while not stop.is_set():
            for name in ("real", "link"):
                os.rename(place.ws / name, place.ws / "at")
                os.rename(place.ws / "at", place.ws / name)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        seen = set()
        for _ in range(300):
            answer = client.answer(client.request("fs/readFile", {
                "path": uri(place.ws / "at/f"), "followSymlinks": False}))
            seen.add(answer["result"]["dataBase64"] if "result" in answer
                     else answer["error"]["code"])
    finally:
        stop.set()
        thread.join()
    assert seen <= {b64(b"mine"), -32004, -32603}


@pytest.mark.parametrize("boxed", [False, True])
def test_special_files_hold_nobody_up(place, client, boxed):
    os.mkfifo(place.ws / "fifo")
    more = {"sandbox": sandbox(place)} if boxed else {}
    path = uri(place.ws / "fifo")
    wanted = (-32600, f"path `{place.ws}/fifo` is not a file")
    assert refused(client, "fs/readFile", {"path": path, **more}) == wanted
    assert refused(client, "fs/writeFile", {"path": path, "dataBase64": "", **more}) == wanted
    assert refused(client, "fs/open", {"handleId": "p", "path": path, **more}) == wanted
    assert refused(client, "fs/open", {"handleId": "p", "path": path, "mode": "replace",
                                       **more}) == wanted
    assert refused(client, "fs/copy", {"sourcePath": path, "recursive": True,
                                       "destinationPath": path + "2", **more})[0] == -32600
    assert refused(client, "fs/readFile", {"path": "file:///dev/zero", **more})[0] == -32600
    assert refused(client, "fs/readDirectory", {"path": path, **more})[0] == -32603


def test_large_files(place, client):
    data = os.urandom(1 << 20) * 16
    (place.ws / "big").write_bytes(data)
    assert content(client, place.ws / "big") == data
    assert content(client, place.ws / "big", sandbox=sandbox(place)) == data
    client.call("fs/writeFile", {"path": uri(place.ws / "copy"), "dataBase64": b64(data[:9 << 20]),
                                 "sandbox": sandbox(place)})
    assert (place.ws / "copy").read_bytes() == data[:9 << 20]
    with open(place.ws / "huge", "wb") as huge:
        huge.truncate((512 << 20) + 1)
    assert refused(client, "fs/readFile", {"path": uri(place.ws / "huge")}) == (
        -32600, "file is too large to read: limit is 536870912 bytes")


def test_calls_of_one_client_are_done_in_order(place, client):
    """Sent without waiting, with and without a sandbox, and by handles."""
    path, box = uri(place.ws / "f"), sandbox(place)
    numbers = []
    for i in range(20):
        numbers.append(client.request("fs/writeFile", {
            "path": path, "dataBase64": b64(b"%d" % i), "sandbox": box if i % 2 else None}))
        client.request("fs/open", {"handleId": f"h{i}", "path": path})
        numbers.append(client.request("fs/readBlock", {"handleId": f"h{i}", "offset": 0, "len": 9}))
        client.request("fs/close", {"handleId": f"h{i}"})
    for i in range(20):
        assert client.answer(numbers[2 * i])["result"] == {}
        assert client.answer(numbers[2 * i + 1])["result"] == {"chunk": b64(b"%d" % i), "eof": True}


def test_an_open_file_is_the_clients_alone(place, client, server):
    (place.ws / "f").write_text("old")
    client.call("fs/open", {"handleId": "h", "path": uri(place.ws / "f")})
    (place.ws / "g").write_text("new")
    os.rename(place.ws / "g", place.ws / "f")
    assert client.call("fs/readBlock", {"handleId": "h", "offset": 0, "len": 3}) == {
        "chunk": b64(b"old"), "eof": True}
    with server.client() as other:
        assert refused(other, "fs/readBlock", {"handleId": "h", "offset": 0, "len": 3}) == (
            -32004, "unknown file handle `h`")


def test_a_failed_write_closes_the_file(place, client):
    (place.ws / "f").write_text("x")
    client.call("fs/open", {"handleId": "h", "path": uri(place.ws / "f")})
    assert refused(client, "fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": b64(b"y")}) == (
        -32603, "Bad file descriptor (os error 9)")
    assert refused(client, "fs/readBlock", {"handleId": "h", "offset": 0, "len": 1})[0] == -32004


def test_many_clients_make_the_same_folders(place, server):
    """Each call in a helper of its own, all at once."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(16)]
        params = {"path": uri(place.ws / "a/b/c/d")}
        numbers = [client.request("fs/createDirectory", params) for client in clients]
        assert [client.answer(number)["result"] for client, number in zip(clients, numbers)] == [{}] * 16


def test_running_out_of_descriptors_fails_one_call(place):
    server = Server(place, prefix=["prlimit", "--nofile=48"])
    (place.ws / "f").write_text("hi")
    with server.client() as client:
        assert content(client, place.ws / "f") == b"hi"
        opened = 0
        while True:
            answer = client.answer(client.request("fs/open", {"handleId": f"h{opened}",
                                                              "path": uri(place.ws / "f")}))
            if "error" in answer:
                break
            opened += 1
        assert answer["error"]["code"] == -32603 and "os error 24" in answer["error"]["message"]
        assert client.call("fs/readBlock", {"handleId": "h0", "offset": 0, "len": 2})["eof"]
        for number in range(opened):
            client.call("fs/close", {"handleId": f"h{number}"})
        assert client.call("fs/open", {"handleId": "x", "path": uri(place.ws / "f")})


def test_helpers_end_with_the_server(place, client, server):
    for more in ({}, {"sandbox": sandbox(place)}):
        client.call("fs/getMetadata", {"path": uri(place.ws), **more})
    helpers = [os.pidfd_open(pid) for pid in server.helpers()]
    assert len(helpers) == 2
    server.process.kill()
    for helper in helpers:
        assert select.select([helper], [], [], WAIT)[0]
        os.close(helper)


def test_a_killed_helper_fails_one_call(place, client, server):
    """It is stopped first, so that the call is on its way when it dies."""
    (place.ws / "f").write_text("hi")
    box = {"sandbox": sandbox(place)}
    assert content(client, place.ws / "f", **box) == b"hi"
    helper, = server.helpers()
    os.kill(helper, signal.SIGSTOP)
    number = client.request("fs/readFile", {"path": uri(place.ws / "f"), **box})
    client.call("environment/status", {})  # the server took the call, and is not held up by it
    os.kill(helper, signal.SIGKILL)
    answer = client.answer(number)
    assert answer["error"]["code"] == -32603 and "helper" in answer["error"]["message"]
    assert content(client, place.ws / "f", **box) == b"hi"


def test_helpers_are_kept_and_shared(place, client, server):
    box = {"sandbox": sandbox(place)}
    for _ in range(5):
        client.call("fs/getMetadata", {"path": uri(place.ws), **box})
    helpers = server.helpers()
    assert len(helpers) == 1
    with server.client() as other:
        other.call("fs/getMetadata", {"path": uri(place.ws), **box})
    assert server.helpers() == helpers
    client.call("fs/getMetadata", {"path": uri(place.ws)})
    assert len(server.helpers()) == 2


def test_a_helper_that_waits_does_not_hold_up_others(place, client, server):
    client.call("fs/getMetadata", {"path": uri(place.ws)})
    helper, = server.helpers()
    os.kill(helper, signal.SIGSTOP)
    number = client.request("fs/getMetadata", {"path": uri(place.ws)})
    with server.client() as other:
        assert other.call("fs/getMetadata", {"path": uri(place.ws)})["isDirectory"]
    os.kill(helper, signal.SIGCONT)
    assert client.answer(number)["result"]["isDirectory"]


def test_protection_follows_the_folder(place, client):
    """.git is guarded although it came to be after the helper had started."""
    box = {"sandbox": sandbox(place)}
    client.call("fs/writeFile", {"path": uri(place.ws / "f"), "dataBase64": "", **box})
    (place.ws / ".git/hooks").mkdir(parents=True)
    assert refused(client, "fs/writeFile", {"path": uri(place.ws / ".git/hooks/pre-commit"),
                                            "dataBase64": "", **box})[0] == -32603


def test_a_path_that_is_too_long_is_refused_at_once(client):
    assert refused(client, "fs/readFile", {"path": "file:///" + "x" * 300}) == (
        -32603, "Filename too long (os error 36)")
    assert refused(client, "fs/readFile", {"path": "file:///" + "x" * 20000}) == (
        -32603, "Filename too long (os error 36)")


def test_a_name_that_is_held_is_missing(place, client):
    client.call("fs/writeFile", {"path": uri(place.ws / "f"), "dataBase64": "",
                                 "sandbox": sandbox(place)})
    git = uri(place.ws / ".git")
    assert refused(client, "fs/getMetadata", {"path": git}) == (
        -32004, "No such file or directory (os error 2)")
    assert missing(client, 1, place.ws / ".git")
    (place.ws / ".git").mkdir()
    assert client.event("fs/missingChanged")["params"] == {"watchId": 1}
    assert client.call("fs/getMetadata", {"path": git})["isDirectory"]


def test_a_bad_sandbox_is_refused(place, client):
    wrong = sandbox(place)
    del wrong["permissions"]
    assert refused(client, "fs/getMetadata", {"path": uri(place.ws), "sandbox": wrong})[0] == -32602
    homeless = sandbox(place)
    del homeless["cwd"], homeless["workspaceRoots"]
    homeless["permissions"]["file_system"]["entries"].append(
        {"path": {"type": "glob_pattern", "pattern": "*.env"}, "access": "deny"})
    assert refused(client, "fs/getMetadata", {"path": uri(place.ws), "sandbox": homeless})[0] == -32602


def missing(client, number, *paths, present=None, **more):
    return client.call("fs/watchMissing", {"watchId": number, "missing": [uri(p) for p in paths],
                                           "present": present and uri(present), **more})["watching"]


def test_missing_paths_are_watched(place, client):
    deep = place.ws / "no/such/folder"
    assert missing(client, 1, deep, place.ws / "f")
    (place.ws / "other").write_text("")
    (place.ws / "no").mkdir()
    assert client.event("fs/missingChanged")["params"] == {"watchId": 1}
    assert missing(client, 2, deep, present=place.ws / "other")
    (place.ws / "other").unlink()
    assert client.event("fs/missingChanged")["params"] == {"watchId": 2}
    assert missing(client, 3, deep)
    assert missing(client, 4, place.ws / "last")  # ends the third
    deep.mkdir(parents=True)
    (place.ws / "last").write_text("")
    assert client.event("fs/missingChanged")["params"] == {"watchId": 4}
    client.call("environment/status", {})
    assert client.events == []


def test_what_cannot_be_watched_is_said(place, client):
    (place.ws / "dir").mkdir()
    (place.ws / "link").symlink_to("dir")
    assert not missing(client, 1)
    assert not missing(client, 2, place.ws)
    assert not missing(client, 3, place.ws / "link/x")
    assert not missing(client, 4, place.ws / "x", present=place.ws / "y")
    assert missing(client, 5, place.ws / "x")
    assert not missing(client, 5, place.ws / "x")
    assert not missing(client, 6, place.ws / "x", sandbox=sandbox(place))


def discover(client, *roots):
    return client.call("capabilityRoots/discoverV1", {"roots": list(roots)})["roots"]


def test_skills_and_plugins_are_found(place, client):
    """In a sandbox as without one; tests/e2e/test_discovery.py has more layouts."""
    top = place.ws / "plugin"
    files = {".codex-plugin/plugin.json": '{"mcpServers": "./mcp.json", "apps": "./../x"}',
             "mcp.json": "{}", "skills/b/SKILL.md": "# b\0", "skills/a/SKILL.md": "# a é",
             "skills/a/agents/openai.yaml": "x: 1",
             "inner/.claude-plugin/plugin.json": "not JSON", "bad/SKILL.md": b"\xff"}
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (top / "link").symlink_to("skills")

    def file(name):
        return {"path": uri(top / name), "contents": files[name]}

    found, missing = discover(
        client, {"id": "p", "path": uri(top), "sandbox": sandbox(place)},
        {"id": "none", "path": uri(place.ws / "none")})
    warnings = found.pop("warnings")
    assert found == {
        "id": "p", "path": uri(top), "error": None,
        "plugin": {"manifest": file(".codex-plugin/plugin.json"), "mcpConfig": file("mcp.json"),
                   "appsConfig": None},
        "skills": [{"instructions": {**file("skills/a/SKILL.md"), "path": uri(top / "link/a/SKILL.md")},
                    "metadata": {**file("skills/a/agents/openai.yaml"),
                                 "path": uri(top / "link/a/agents/openai.yaml")}},
                   {"instructions": {**file("skills/b/SKILL.md"), "path": uri(top / "link/b/SKILL.md")},
                    "metadata": None}],
        "namespaceManifests": [file(".codex-plugin/plugin.json"),
                               file("inner/.claude-plugin/plugin.json")]}
    assert len(warnings) == 2
    assert any("not UTF-8" in text for text in warnings)
    assert any("must remain below" in text for text in warnings)
    assert missing["error"].endswith("No such file or directory (os error 2)")
    assert missing["skills"] == []
    with pytest.raises(RpcError) as error:
        discover(client, {"id": "w", "path": "relative"})
    assert error.value.code == -32602
    assert discover(client) == []


def test_what_may_not_be_read_is_not_found(place, client):
    (place.ws / "s").mkdir()
    (place.ws / "s/SKILL.md").write_text("secret")
    found, = discover(client, {"id": "s", "path": uri(place.ws), "sandbox": sandbox(
        place, entry(place.ws / "s", "deny"))})
    assert found["skills"] == [] and found["error"] is None and found["warnings"]


def test_the_copy_of_a_folder_gets_the_folders_above_it(place, client):
    (place.ws / "from/sub").mkdir(parents=True)
    (place.ws / "from/sub/f").write_text("x")
    def copy(source, target):
        return {"sourcePath": uri(place.ws / source), "destinationPath": uri(place.ws / target), "recursive": True}
    client.call("fs/copy", copy("from", "a/b/c"))
    assert (place.ws / "a/b/c/sub/f").read_text() == "x"
    assert refused(client, "fs/copy", copy("from", "from/x/y/z"))[0] == -32600
    assert not (place.ws / "from/x").exists()
    assert refused(client, "fs/copy", copy("from/sub/f", "p/q"))[0] == -32004  # a file does not
