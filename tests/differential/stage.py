"""Where sequences are played, and by whom.

    base/differ        the program
    base/W/            the workspace; a file system in memory of its own where that can be had
    base/W/made/       folders that only root can make, or that only others own: places to play in
        sgid           set-group-id, of a group that the player is not in
        shared         sticky, of somebody else, with things of somebody else (g, h, i)
        small-memory   a file system with little room and few inodes
        small-disk     the same on ext4, when there is a loop device
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile

USER, OTHER = 64999, 12345
MS_PRIVATE_ALL = (1 << 18) | 0x4000
CLONE_NEWNS = 0x20000
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


def own_mounts():
    """Mounts of this process are its own from here on."""
    check(libc.unshare(CLONE_NEWNS), "unshare")
    check(libc.mount(b"none", b"/", None, MS_PRIVATE_ALL, None), "private mounts")


def mount(kind, path, options, source=b"none"):
    check(libc.mount(source, os.fsencode(path), kind, 0, options), f"mounting {path}")


class Stage:
    """Folders of one player; `uid` 0 or an ordinary user's. Root has own_mounts() called before."""

    def __init__(self, differ, uid, is_read_only=False):
        self.uid = uid
        self.profile = ["--profile", "read-only"] if is_read_only else []
        self.cleanup = contextlib.ExitStack()
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="differ-", dir=os.environ["CORDON_TESTS"]))
        self.cleanup.callback(self.remove)
        self.lacks = []
        if os.geteuid() == 0:
            mount(b"tmpfs", self.base, b"mode=755")
        self.ws = self.base / "W"
        self.places = ["root", "root", "deep", "deep"]
        for folder in (self.ws, self.ws / "made", self.base / "home", self.base / "tmp"):
            folder.mkdir()
        shutil.copy(differ, self.base / "differ")
        self.program = self.base / "differ"
        if os.geteuid() == 0:
            self.made()
            for folder in (self.ws, self.base / "home", self.base / "tmp"):
                os.chown(folder, uid, uid)
        self.env = {"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": str(self.base / "home"),
                    "TMPDIR": str(self.base / "tmp")}

    def folder(self, name, owner, group, mode):
        path = self.ws / "made" / name
        path.mkdir()
        os.chown(path, owner, group)
        path.chmod(mode)
        self.places.append(name)
        return path

    def made(self):
        self.folder("sgid", self.uid, OTHER, 0o2777)
        shared = self.folder("shared", OTHER, OTHER, 0o1777)
        (shared / "g").write_text("of another\n")
        (shared / "h").mkdir()
        (shared / "i").symlink_to("a")
        for name in "ghi":
            os.chown(shared / name, OTHER, OTHER, follow_symlinks=False)
        small = self.ws / "made" / "small-memory"
        small.mkdir()
        mount(b"tmpfs", small, f"size=160k,nr_inodes=34,mode=755,uid={self.uid},gid={self.uid}".encode())
        self.places.append("small-memory")
        self.disk()

    def disk(self):
        """Without a journal and late allocation, what fits does not depend on when it is written."""
        image, folder = self.base / "disk", self.ws / "made" / "small-disk"
        tool = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin:/bin")
        if not tool:
            self.lacks.append("small-disk: no mkfs.ext4")
            return
        folder.mkdir()
        with open(image, "wb") as file:
            file.truncate(1 << 20)
        subprocess.run([tool, "-q", "-F", "-m", "0", "-N", "32", "-b", "1024", "-O", "^has_journal,^resize_inode",
                        "-E", f"root_owner={self.uid}:{self.uid}", image], check=True)
        done = subprocess.run(["mount", "-o", "loop,nodelalloc", image, folder], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            self.lacks.append(f"small-disk: {done.stderr.strip()}")
            return
        self.cleanup.callback(subprocess.run, ["umount", folder], check=False)
        (folder / "lost+found").rmdir()
        self.places.append("small-disk")

    def remove(self):
        if os.geteuid() == 0:
            subprocess.run(["umount", "-l", "-R", self.base], check=False)
        shutil.rmtree(self.base, ignore_errors=True)

    def run(self, words, cordon=None):
        """What differ prints, outside or inside of the sandbox."""
        argv = [self.program, *words, self.ws]
        if cordon:
            argv = [cordon, "run", "--quiet", "--no-audit", *self.profile, "--", *argv]
        who = {}
        if os.geteuid() == 0 and self.uid:
            who = {"user": self.uid, "group": self.uid, "extra_groups": []}
        done = subprocess.run([str(word) for word in argv], cwd=self.ws, env=self.env, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, **who)
        if done.returncode not in (0, 1) or done.stderr:
            raise RuntimeError(f"{argv}: status {done.returncode}: {done.stderr.strip()[:2000]}")
        return done.stdout
