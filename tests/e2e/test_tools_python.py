"""python3 inside: virtual environments, processes, event loops, servers on localhost."""
import os
import textwrap

from tools import PYTHON, Sides, need, passes


def python(place, source, *options, **kwargs):
    return place.run(*options, "--", PYTHON, "-c", textwrap.dedent(source), **kwargs)


def test_venv(place):
    need(PYTHON)
    out = passes(place.shell(
        f"{PYTHON} -m venv --without-pip env && . env/bin/activate && "
        "python -c 'import sys; print(sys.prefix != sys.base_prefix, sys.prefix)'"))
    assert out == f"True {place.ws}/env\n"


def test_multiprocessing(place):
    need(PYTHON)
    source = """
        import multiprocessing as mp, sys
        def square(x): return x * x
        if __name__ == "__main__":
            for method in sys.argv[1:]:
                context = mp.get_context(method)
                with context.Pool(3) as pool:
                    print(method, sum(pool.map(square, range(10))))
            queue, lock = mp.Queue(), mp.Lock()
            shared = mp.Value("i", 1)
            def add():
                with lock: shared.value += 41
                queue.put(shared.value)
            child = mp.get_context("fork").Process(target=add); child.start()
            print(queue.get()); child.join()
        """
    (place.ws / "job.py").write_text(textwrap.dedent(source))
    out = passes(place.run("--", PYTHON, "job.py", "fork", "spawn", "forkserver"))
    assert out == "fork 285\nspawn 285\nforkserver 285\n42\n"


def test_threads_that_share_a_working_directory(place):
    """What one of them changes holds for the next file of another, which has made some before. So does the
    umask, and a descriptor that stands for another directory by now."""
    need(PYTHON)
    assert passes(python(place, """
        import os, queue, threading
        todo, done = queue.Queue(), queue.Queue()
        def maker():
            while (name := todo.get()) is not None:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                os.mkdir(name + "d")
                os.close(os.open("d/" + name, os.O_CREAT | os.O_EXCL, dir_fd=5))
                done.put(None)
        makers = [threading.Thread(target=maker) for i in range(3)]
        [thread.start() for thread in makers]
        top = os.getcwd()
        for i in range(100):
            os.mkdir(f"{top}/{i}")
            os.mkdir(f"{top}/{i}/d")
            os.dup2(os.open(f"{top}/{i}", os.O_PATH), 5)
            os.chdir(f"{top}/{i}")
            os.umask(i % 8)
            for name in "abcef": todo.put(name)
            for name in "abcef": done.get()
        [todo.put(None) for thread in makers]
        for i in range(100):
            assert sorted(os.listdir(f"{top}/{i}/d")) == [*"abcef"], (i, os.listdir(f"{top}/{i}/d"))
            for name in "abcef":
                assert os.stat(f"{top}/{i}/{name}").st_mode & 0o777 == 0o666 & ~(i % 8), (i, name)
                os.rmdir(f"{top}/{i}/{name}d")
        print(len(os.listdir(top)) >= 100)
        """)) == "True\n"


def test_processors_are_as_before(place):
    """The guard may keep a caller on one processor, but only while it is held in its call."""
    need(PYTHON)
    assert passes(python(place, """
        import os
        before = os.sched_getaffinity(0)
        for i in range(3000):
            os.close(os.open(f"{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            assert os.sched_getaffinity(0) == before, i
        os.sched_setaffinity(0, {min(before)})
        for i in range(3000):
            os.close(os.open(f"a{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            assert os.sched_getaffinity(0) == {min(before)}, i
        """)) == ""


def test_a_directory_that_was_moved_meanwhile(place):
    """By somebody outside, whom the guard does not see."""
    need(PYTHON)
    for name in ("a", "b"):
        (place.ws / name).mkdir()
    process = place.start("run", "--", PYTHON, "-c", textwrap.dedent("""
        import os
        for i in range(50):
            open(f"a/{i}", "x").close()
            os.write(1, b".")
            os.read(0, 1)
        """))
    for i in range(50):
        assert process.stdout.read(1) == b".", process.stderr.read()
        assert (place.ws / "a" / str(i)).exists(), i
        os.rename(place.ws / "a", place.ws / "c")
        os.rename(place.ws / "b", place.ws / "a")
        os.rename(place.ws / "c", place.ws / "b")
        process.stdin.write(b".")
        process.stdin.flush()
    assert process.wait() == 0


def test_shared_memory_and_semaphores(place):
    need(PYTHON)
    assert passes(python(place, """
        from multiprocessing import shared_memory
        import os
        block = shared_memory.SharedMemory(create=True, size=1 << 20)
        block.buf[:5] = b"hello"
        again = shared_memory.SharedMemory(name=block.name)
        print(bytes(again.buf[:5]), len(os.listdir("/dev/shm")))
        again.close(); block.close(); block.unlink()
        """)) == "b'hello' 1\n"


def test_asyncio_subprocesses(place):
    """The loop wakes itself by send(2) on a socketpair; pidfds watch the children."""
    need(PYTHON)
    assert passes(python(place, """
        import asyncio
        async def one(i):
            child = await asyncio.create_subprocess_exec(
                "sh", "-c", f"echo out{i}; exit {i}", stdout=asyncio.subprocess.PIPE)
            out, _ = await child.communicate()
            return out.decode().strip(), child.returncode
        async def main():
            print(await asyncio.gather(*(one(i) for i in range(4))))
            print(await asyncio.to_thread(lambda: "thread"))
        asyncio.run(main())
        """)) == "[('out0', 0), ('out1', 1), ('out2', 2), ('out3', 3)]\nthread\n"


def test_server_on_localhost(place):
    need(PYTHON)
    (place.ws / "page").write_text("served\n")
    assert passes(python(place, """
        import http.server, threading, urllib.request, socket
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://localhost:{server.server_port}/page"
        print(urllib.request.urlopen(url).read().decode(), end="")
        v6 = socket.create_server(("::1", 0), family=socket.AF_INET6)
        client = socket.create_connection(v6.getsockname()[:2])
        print(client.getpeername()[0])
        server.shutdown()
        """)) == "served\n::1\n"


def test_a_server_process_and_a_client_process(place):
    need(PYTHON)
    out = passes(place.shell(f"""
        mkfifo log; exec 3<>log
        {PYTHON} -u -m http.server --bind 127.0.0.1 8123 >log 2>&1 &
        read serving <&3
        {PYTHON} -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8123/").status)'
        """))
    assert out == "200\n"


def test_nothing_but_localhost(place):
    need(PYTHON)
    ran = python(place, """
        import socket
        for address in ("192.0.2.1", "8.8.8.8"):
            try: socket.create_connection((address, 53), timeout=5)
            except OSError as error: print(error.strerror)
        try: socket.gethostbyname("example.org")
        except OSError: print("no names")
        """)
    assert passes(ran) == "Network is unreachable\nNetwork is unreachable\nno names\n"


def test_temporary_files(place):
    need(PYTHON)
    out = passes(python(place, """
        import tempfile, os, mmap
        with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryFile() as other:
            file.write(b"x" * 5000); file.flush()
            other.write(b"y"); other.seek(0)
            print(os.path.dirname(file.name), os.path.getsize(file.name), other.read())
            print(mmap.mmap(file.fileno(), 0)[:2])
        """))
    assert out == f"{place.tmp} 5000 b'y'\nb'xx'\n"


def test_sqlite_in_python(place):
    need(PYTHON)
    assert passes(python(place, """
        import sqlite3
        with sqlite3.connect("base.db") as base:
            print(base.execute("pragma journal_mode=wal").fetchone()[0])
            base.execute("create table t(x)")
            base.executemany("insert into t values (?)", [(i,) for i in range(100)])
        print(sqlite3.connect("base.db").execute("select sum(x) from t").fetchone()[0])
        """)) == "wal\n4950\n"


def test_managers_and_servers_on_unix_sockets(place):
    """multiprocessing.Manager, a fork server, asyncio and socketserver, with the network restricted."""
    need(PYTHON)
    (place.ws / "job.py").write_text(textwrap.dedent("""
        import asyncio, multiprocessing as mp, os, socket, socketserver, tempfile, threading
        from multiprocessing.connection import Client, Listener

        def work(shared, lock, i):
            with lock: shared[i] = i * i

        async def serve():
            async def answer(reader, writer):
                writer.write((await reader.read(9)).upper()); writer.close()
            server = await asyncio.start_unix_server(answer, "server.sock")
            reader, writer = await asyncio.open_unix_connection("server.sock")
            writer.write(b"asyncio"); print(await reader.read())
            server.close()

        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                context = mp.get_context(method)
                with context.Manager() as manager:
                    shared, lock = manager.dict(), manager.Lock()
                    all = [context.Process(target=work, args=(shared, lock, i)) for i in range(3)]
                    for one in all: one.start()
                    for one in all: one.join()
                    print(method, sorted(shared.items()))
            with Listener(family="AF_UNIX") as listener:
                thread = threading.Thread(target=lambda: Client(listener.address).send("sent"))
                thread.start(); print(listener.accept().recv()); thread.join()
            asyncio.run(serve())
            class Echo(socketserver.StreamRequestHandler):
                def handle(self): self.wfile.write(self.rfile.readline())
            with socketserver.UnixStreamServer("echo.sock", Echo) as server:
                threading.Thread(target=server.handle_request).start()
                client = socket.socket(socket.AF_UNIX); client.connect("echo.sock")
                client.sendall(b"line\\n"); print(client.recv(9))
            one, two = socket.socketpair(); one.send(b"pair"); print(two.recv(9))
            one = socket.socket(socket.AF_UNIX); one.bind("\\0cordon-abstract"); one.listen()
            two = socket.socket(socket.AF_UNIX); two.connect("\\0cordon-abstract"); print("abstract")
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); one.bind("seq.sock"); one.listen()
            two = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); two.connect("seq.sock")
            two.send(b"packet"); print(one.accept()[0].recv(99))
            try: socket.socket(socket.AF_UNIX).connect("missing.sock")
            except OSError as error: print(error.strerror)
            with socket.socket(socket.AF_UNIX) as one:
                try: one.connect("echo.sock")
                except OSError as error: print(error.strerror)
        """))
    Sides(place).is_alike(f"{PYTHON} job.py; ls")


def test_python_files_as_outside(place):
    """What the standard library does to files, and the errors that it gets."""
    need(PYTHON)
    (place.ws / "files.py").write_text(textwrap.dedent("""
        import contextlib, dbm, errno, glob, logging.handlers, os, pathlib, shelve, shutil, tempfile, zipfile
        ws = pathlib.Path.cwd()
        for i in range(50):
            folder = ws / "a" / str(i % 5) / "deep"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{i}.txt").write_text(str(i))
        shutil.copytree("a", "b", symlinks=True); shutil.move("b/1", "moved"); shutil.rmtree("b/2")
        shutil.make_archive("archive", "zip", "a"); shutil.unpack_archive("archive.zip", "unpacked")
        os.replace("a/0/deep/0.txt", "b/0/deep/5.txt"); os.renames("a/3/deep/3.txt", "new/way/3.txt")
        os.removedirs("new/way") if not os.listdir("new/way") else None
        os.link("b/0/deep/5.txt", "hard"); os.symlink("hard", "soft"); os.chmod("soft", 0o600)
        with shelve.open("shelf") as shelf: shelf["a"] = 1
        handler = logging.handlers.RotatingFileHandler("log", maxBytes=30, backupCount=3)
        for i in range(20): handler.emit(logging.LogRecord("a", 10, "p", i, f"line {i}", None, None))
        here = os.open(".", os.O_PATH)
        os.mkdir("by-descriptor", dir_fd=here); os.rename("by-descriptor", "renamed", src_dir_fd=here, dst_dir_fd=here)
        os.chdir("a"); os.rename("../renamed", "1/renamed"); os.chdir("1/renamed")
        open("../../../from-below", "w").close(); os.rmdir("../renamed")
        def tried(call, *words):
            try: call(*words)
            except OSError as error: print(call.__name__, errno.errorcode[error.errno])
            else: print(call.__name__, "works")
        tried(open, "gone", "w"); os.chdir(ws)
        tried(os.mkdir, "a"); tried(os.rmdir, "a"); tried(os.unlink, "a"); tried(os.rename, "a", "a/b")
        tried(os.rename, "b", "hard"); tried(os.rename, "hard", "b"); tried(os.link, "a", "c")
        tried(os.symlink, "x", "soft"); tried(open, "hard/x", "w"); tried(open, "x" * 300, "w")
        tried(os.rename, "missing", "x"); tried(os.mkdir, "missing/x"); tried(os.truncate, "a", 0)
        tried(os.mkdir, ""); tried(os.open, "soft", os.O_WRONLY | os.O_NOFOLLOW); tried(os.rename, ".", "x")
        tried(os.open, "hard", os.O_CREAT | os.O_EXCL | os.O_WRONLY); tried(os.mkdir, ".."); tried(os.rmdir, ".")
        tried(os.open, ws, os.O_TMPFILE | os.O_RDWR); tried(os.mkfifo, "pipe"); tried(os.mkfifo, "pipe")
        tried(os.open, "a", os.O_CREAT | os.O_WRONLY); tried(os.open, "a/", os.O_CREAT | os.O_WRONLY)
        tried(os.open, "new/", os.O_CREAT | os.O_WRONLY); tried(os.mkdir, "slash/"); tried(os.rename, "slash/", "cut")
        tried(os.symlink, "dangling-target", "dangling"); tried(open, "dangling", "w"); tried(open, "dangling", "x")
        file = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
        os.write(file, b"kept")
        os.link(f"/proc/self/fd/{file}", "linked", src_dir_fd=here, follow_symlinks=True)
        print(sorted(glob.glob("**", recursive=True)))
        """))
    Sides(place, unlike=["*.zip", "*/shelf*"], loose=[(r"shelf(\.\w+)?", "shelf")]).is_alike(f"{PYTHON} files.py")
