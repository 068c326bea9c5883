"""python3 inside: virtual environments, processes, event loops, servers on localhost."""
import textwrap

from tools import PYTHON, need, passes


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


def test_unittest(place):
    """What an agent does all day."""
    need(PYTHON)
    (place.ws / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_one(self): self.assertEqual(1, 1)\n"
        "    def test_two(self): self.assertEqual(1, 2)\n")
    ran = place.run("--", PYTHON, "-m", "unittest")
    assert ran.returncode == 1
    assert "FAILED (failures=1)" in ran.stderr
