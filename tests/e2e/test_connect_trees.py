"""`cordon --connect URL cp` of whole folders: what becomes of names, modes, links and special files,
and of what a server says that is not to be trusted."""
import base64
import json
import os
import socket
import stat
import threading
import time

import pytest
from remote import PlainServer, Terminal
from served import Server, uri


@pytest.fixture
def server(place):
    with Server(place, listen=f"unix:{place.base}/server.sock") as server:
        yield server


def copy(place, server, *words, code=0):
    ran = place.cordon("--connect", server.url, "cp", *words)
    assert ran.returncode == code, ran.stderr
    return ran.stderr


def describe(top):
    """Every path below a folder, with what is there."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                what = ("link", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                what = ("folder", mode)
            else:
                what = ("file", mode, open(path, "rb").read())  # noqa: SIM115
            found[os.path.relpath(path, os.fsencode(top))] = what
    return found


@pytest.fixture
def tree(place):
    tree = place.ws / "tree"
    for folder in ("empty", "a/b/c", "shut", "with space\nand line"):
        (tree / folder).mkdir(parents=True)
    (tree / "a/script").write_text("#!/bin/sh\n")
    (tree / "a/script").chmod(0o751)
    (tree / "a/b/c/secret").write_text("x")
    (tree / "a/b/c/secret").chmod(0o600)
    (tree / "nothing").touch()
    (tree / "large").write_bytes(os.urandom((1 << 20) + 17))
    (tree / "to-file").symlink_to("a/script")
    (tree / "to-folder").symlink_to("a")
    (tree / "to-nowhere").symlink_to("/no/such/place")
    open(os.fsencode(tree) + b"/\xff\xfe", "wb").close()  # noqa: SIM115
    (tree / "shut/in").write_text("y")
    (tree / "shut").chmod(0o555)
    yield tree
    for path, _, _ in os.walk(place.base):
        os.chmod(path, 0o755)


def test_there_and_back(place, server, tree):
    (place.ws / "there").mkdir()
    (place.ws / "here").mkdir()
    meant = describe(tree)
    copy(place, server, tree, f"remote:{place.ws}/there")  # into it, by its own name
    assert describe(place.ws / "there/tree") == meant
    copy(place, server, "remote:there/tree", place.ws / "here")
    assert describe(place.ws / "here/tree") == meant
    copy(place, server, f"{tree}/", "remote:new")  # the new name
    copy(place, server, "remote:new", place.ws / "back")
    assert describe(place.ws / "new") == describe(place.ws / "back") == meant
    assert stat.S_IMODE((place.ws / "back").stat().st_mode) == stat.S_IMODE(tree.stat().st_mode)


def test_a_copy_is_merged_into_what_is_there(place, server, tree):
    (place.ws / "there/a").mkdir(parents=True)
    (place.ws / "there").chmod(0o1770)
    (place.ws / "there/mine").write_text("stays")
    (place.ws / "there/a/script").write_text("goes")
    (place.ws / "there/to-file").symlink_to("elsewhere")
    (place.ws / "there/to-nowhere").write_text("a file")
    for turn in range(2):
        if turn:
            (place.ws / "there/shut").chmod(0o755)
        copy(place, server, f"{tree}/.", "remote:there")
        assert stat.S_IMODE((place.ws / "there").stat().st_mode) == 0o1770
        got = describe(place.ws / "there")
        assert got.pop(b"mine")[2] == b"stays"
        assert got == describe(tree)
    (place.ws / "there/mine").unlink()
    for turn in range(2):
        copy(place, server, "remote:there/.", place.ws / "again")
        if turn:  # a folder that was here stays as open as it was
            assert stat.S_IMODE((place.ws / "again/shut").stat().st_mode) == 0o700
            (place.ws / "again/shut").chmod(0o555)
        assert describe(place.ws / "again") == describe(tree)
        (place.ws / "again/shut").chmod(0o700)


@pytest.mark.parametrize("direction", ["there", "here"])
def test_what_cannot_be_copied_is_said_and_the_rest_is_copied(place, server, direction):
    tree = place.ws / "tree"
    tree.mkdir()
    (tree / "first").write_text("1")
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))
        os.symlink(b"\xff", os.fsencode(tree / "odd"))
        (tree / "zlast").write_text("2")
        words = [tree, "remote:to"] if direction == "there" else ["remote:tree", place.ws / "to"]
        said = copy(place, server, *words, code=1)
    assert sorted(os.listdir(place.ws / "to")) == ["first", "zlast"]
    assert "tree/odd is not copied: where the link leads is no UTF-8" in said
    assert "3 entries are not copied" in said
    if direction == "there":
        assert "pipe is not copied: it is a named pipe" in said
        assert "socket is not copied: it is a socket" in said
    else:
        assert said.count("is not copied: it is neither file nor directory nor link") == 2


def test_a_file_in_the_way_of_a_folder_is_said(place, server, tree):
    (place.ws / "there").mkdir()
    (place.ws / "there/a").write_text("a file")
    said = copy(place, server, f"{tree}/.", "remote:there", code=1)
    assert "there/a" in said and "1 entry is not copied" in said
    assert (place.ws / "there/a").read_text() == "a file"
    assert (place.ws / "there/large").read_bytes() == (tree / "large").read_bytes()
    assert "there/a" in copy(place, server, tree, "remote:there/a", code=125)


def test_a_tree_that_is_too_deep_is_said(place, server):
    deep = place.ws / "deep"
    (deep / "/".join(["d"] * 200)).mkdir(parents=True)
    (deep / "f").write_text("x")
    said = copy(place, server, deep, "remote:to", code=1)
    assert "more than 128 directories deep" in said
    assert (place.ws / "to/f").read_text() == "x" and (place.ws / "to" / "/".join(["d"] * 127)).is_dir()


def test_a_plain_server_gets_and_gives_what_it_can(place, server, tree):
    def refuse(message):
        method, params = message.get("method"), message.get("params", {})
        if method in ("fs/setMode", "fs/createSymlink"):
            return {"id": message["id"], "error": {"code": -32601, "message": "unknown"}}
        if isinstance(params, dict):
            params.pop("details", None)
        return None

    plain = PlainServer(place, server, refuse=refuse)
    (tree / "shut").chmod(0o755)
    (tree / "to-nowhere").unlink()
    os.unlink(os.fsencode(tree) + b"/\xff\xfe")
    said = copy(place, plain, tree, "remote:there", code=1)
    assert "sets no modes" in said and said.count("this server makes no links") == 2
    assert (place.ws / "there/a/script").read_text() == "#!/bin/sh\n"
    said = copy(place, plain, "remote:tree", place.ws / "here")
    assert "tells neither modes nor links" in said
    assert (place.ws / "here/to-folder/b/c/secret").read_text() == "x"
    assert not (place.ws / "here/to-file").is_symlink()


class Liar:
    """A server whose folder says what the test wants."""

    def __init__(self, place, entries):
        self.path, self.entries = place.base / "liar.sock", entries
        self.url = f"unix:{self.path}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        place.cleanup.callback(self.listener.close)
        place.cleanup.callback(self.listener.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=self.serve, daemon=True).start()

    def answer(self, method, params):
        if method == "initialize":
            return {"sessionId": "00000000-0000-4000-8000-000000000000",
                    "environmentInfo": {"cwd": "file:///there"}}
        if method == "fs/getMetadata":
            return {"isDirectory": True, "isFile": False, "isSymlink": False, "size": 0,
                    "createdAtMs": 0, "modifiedAtMs": 0, "mode": 0o755}
        if method == "fs/readDirectory":
            return {"entries": self.entries if params["path"].endswith("/top") else [
                {"fileName": "deep", "isFile": True, "isDirectory": False, "mode": 0o644}]}
        if method == "fs/readBlock":
            return {"chunk": base64.b64encode(b"evil").decode(), "eof": True}
        return {}

    def serve(self):
        client, _ = self.listener.accept()
        with client, client.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "id" in message:
                    result = self.answer(message["method"], message.get("params", {}))
                    client.sendall(json.dumps({"id": message["id"], "result": result}).encode()
                                   + b"\n")


def test_a_server_cannot_have_anything_written_elsewhere(place):
    """Bad names, and links that later entries go through."""
    outside = place.outside
    (outside / "victim").write_text("good")

    def entry(name, kind, **more):
        return {"fileName": name, "isFile": kind == "file", "isDirectory": kind == "folder",
                "isSymlink": kind == "link", "mode": 0o777, **more}

    liar = Liar(place, [
        entry("..", "folder"), entry(".", "file"), entry("", "file"), entry("a/b", "file"),
        entry("../up", "file"), entry(str(outside / "abs"), "file"),
        entry("x", "file", uri="file:///x/.."), entry("y", "file", uri="nonsense"),
        entry("through", "link", linkTarget=str(outside)), entry("through", "folder"),
        entry("victim", "link", linkTarget=str(outside / "victim")), entry("victim", "file"),
        entry("right", "file")])
    said = copy(place, liar, "remote:/top", place.ws / "to", code=1)
    assert (place.ws / "to/right").read_bytes() == b"evil"
    assert (outside / "victim").read_text() == "good" and os.listdir(outside) == ["victim"]
    assert (place.ws / "to/victim").read_bytes() == b"evil"  # in place of the link
    assert os.readlink(place.ws / "to/through") == str(outside)
    assert sorted(os.listdir(place.ws / "to")) == ["right", "through", "victim"]
    assert said.count("without a right name") == 8 and "through: Not a directory" in said
    assert "9 entries are not copied" in said


def test_a_server_cannot_open_files_to_others(place):
    """Its modes are within the umask, and what was here is opened to nobody."""
    (place.ws / "to/mine").mkdir(parents=True)
    (place.ws / "to/mine").chmod(0o700)
    kinds = {"isFile": False, "isDirectory": True, "isSymlink": False, "mode": 0o777}
    liar = Liar(place, [{"fileName": "mine", **kinds}, {"fileName": "new", **kinds},
                        {**kinds, "fileName": "file", "isFile": True, "isDirectory": False}])
    old = os.umask(0o027)
    try:
        copy(place, liar, "remote:/top/.", place.ws / "to")
    finally:
        os.umask(old)
    modes = {name: stat.S_IMODE((place.ws / "to" / name).stat().st_mode)
             for name in ("mine", "new", "file")}
    assert modes == {"mine": 0o700, "new": 0o750, "file": 0o750}


def test_nothing_is_shown_of_a_short_copy_on_a_terminal(place, server, tree):
    begun = time.monotonic()
    person = Terminal(place, "--connect", server.url, "cp", tree, "remote:to")
    assert person.end() == 0
    assert person.seen == b"" or time.monotonic() - begun > 2  # on a busy machine it is not short


def test_the_methods_that_it_needs(server, place):
    with server.client() as client:
        (place.ws / "f").write_text("x")
        path = {"path": uri(place.ws / "f")}
        client.call("fs/setMode", {**path, "mode": 0o604})
        assert client.call("fs/getMetadata", {**path, "details": True})["mode"] == 0o604
        assert "mode" not in client.call("fs/getMetadata", path)
        link = {"path": uri(place.ws / "l")}
        client.call("fs/createSymlink", {**link, "target": "../far"})
        for method, params, code in (
                ("fs/createSymlink", {**link, "target": "x"}, -32603),
                ("fs/createSymlink", {**link, "target": ""}, -32602),
                ("fs/setMode", {**link, "mode": 0, "followSymlinks": False}, -32603),
                ("fs/setMode", {**link, "mode": 0}, -32004),
                ("fs/setMode", {**path, "mode": 0o1000}, -32602)):
            message = client.answer(client.request(method, params))
            assert message["error"]["code"] == code, (method, params, message)
        plain, full = (
            {entry["fileName"]: entry for entry in client.call("fs/readDirectory", {
                "path": uri(place.ws), **more})["entries"]} for more in ({}, {"details": True}))
        assert set(plain) == {"f"} and set(plain["f"]) == {"fileName", "isDirectory", "isFile"}
        assert full["f"] == {"fileName": "f", "isDirectory": False, "isFile": True,
                             "isSymlink": False, "size": 1, "mode": 0o604,
                             "uri": uri(place.ws / "f")}
        assert (full["l"]["isSymlink"], full["l"]["linkTarget"]) == (True, "../far")
