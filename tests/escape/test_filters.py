"""Calls that the filter refuses by number, whether this kernel has them or not: no case can show an
attack with one that the host lacks, but what the sandbox answers can be seen everywhere."""

import errno
import os

import pytest

import identity
from stage import CORDON, Stage

# name: numbers on x86_64 and aarch64 (asm/unistd_64.h, asm-generic/unistd.h); None: not there
CALLS = {
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265), "setns": (308, 268), "clone3": (435, 435),
}
MACHINES = ("x86_64", "aarch64")


def here(numbers):
    return numbers[MACHINES.index(os.uname().machine)]


def answer(tools, name, *words):
    def scene():
        with Stage(name, True, tools) as stage:
            return stage.attack(*words)
    return identity.play(name, scene)


NAMES = [name for name in identity.here() if identity.is_whole(name)]


@pytest.mark.parametrize("call", CALLS)
def test_the_filter_refuses(call, tools, lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")
    ran = answer(tools, NAMES[-1], "call", here(CALLS[call]))
    expected = errno.ENOSYS if call == "clone3" else errno.EPERM
    assert f"@errno {expected}\n" in ran.out, f"{call}: {ran}"


# Those make and remove names by a descriptor that is open for reading, which no Landlock domain is asked about: on a btrfs a
# command so made ".codex" in its workspace. Elsewhere (ENOTTY, bare) the answer shows what the filter does.
NAMING = {"BTRFS_IOC_SNAP_CREATE": 0x50009401, "BTRFS_IOC_SUBVOL_CREATE": 0x5000940e,
          "BTRFS_IOC_SNAP_DESTROY": 0x5000940f, "BTRFS_IOC_SNAP_CREATE_V2": 0x50009417,
          "BTRFS_IOC_SUBVOL_CREATE_V2": 0x50009418, "BTRFS_IOC_SNAP_DESTROY_V2": 0x5000943f}


def test_no_names_by_ioctl(tools, lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")

    def scene():
        with Stage(NAMES[-1], inside, tools) as stage:
            return [stage.attack("call", here((16, 29)), 0, request).out for request in NAMING.values()]
    inside = False
    assert all(f"@errno {errno.ENOTTY}\n" in out for out in identity.play(NAMES[-1], scene))
    inside = True
    assert all(f"@errno {errno.EPERM}\n" in out for out in identity.play(NAMES[-1], scene))


@pytest.mark.parametrize("number", [39, 41, 165, 520])  # getpid, socket, mount, x32's own execve
def check_the_filter_kills_x32(number, tools, lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")
    ran = answer(tools, NAMES[-1], "x32", number)
    assert ran.started and ran.code == 128 + 31 and "@lost" not in ran.out, ran


if os.uname().machine == "x86_64":  # nothing else has that ABI
    test_the_filter_kills_x32 = check_the_filter_kills_x32
