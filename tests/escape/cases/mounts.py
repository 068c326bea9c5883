"""Changing the mount tree. Bare, each plays in a mount namespace of its own (as root of a user
namespace for an ordinary user): who may mount there may undo everything."""

from catalogue import attack

BARE = ["unshare", "-rm", "--propagation", "private"]


@attack(holes=(1,))
def remount_the_root(stage):
    """Bare, the root is made read-only first."""
    file = stage.victim_file()
    bare = [*BARE, "sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh"]
    stage.attack("remount", "/", file, bare=bare)
    return stage.is_changed(file)


@attack(holes=(1,))
def clear_the_flag_of_the_tree(stage):
    file = stage.victim_file()
    bare = [*BARE, "sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh"]
    stage.attack("setattr", "/", file, bare=bare)
    return stage.is_changed(file)


@attack(holes=(1,))
def bind_under_another_name(stage):
    file = stage.victim_file()
    (stage.ws / "copy").mkdir()
    stage.attack("bind", stage.out, stage.ws / "copy", "victim", bare=BARE)
    return stage.is_changed(file)


@attack(holes=(1,))
def use_a_detached_copy(stage):
    file = stage.victim_file()
    stage.attack("open-tree", stage.out, "victim", bare=BARE)
    return stage.is_changed(file)


@attack(holes=(1,))
def take_a_mask_away(stage):
    """Bare, the attack's namespace gets a mask like ours first."""
    file = stage.file("ws/.codex/config.toml")
    bare = [*BARE, "sh", "-c", 'mount -t tmpfs none .codex && exec "$@"', "sh"]
    return stage.attack("unmask", stage.ws / ".codex", file, bare=bare).won


@attack(holes=(1,))
def move_a_mask_away(stage):
    (stage.ws / ".codex").mkdir()
    (stage.ws / "other").mkdir()
    bare = [*BARE, "sh", "-c", 'mount -t tmpfs none .codex && exec "$@"', "sh"]
    return stage.attack("move-mount", stage.ws / ".codex", stage.ws / "other", bare=bare).won


@attack()
def mount_a_tmpfs(stage):
    (stage.ws / "place").mkdir()
    return stage.attack("mount", "tmpfs", stage.ws / "place", bare=BARE).won


@attack()
def mount_another_proc(stage):
    """A fresh procfs has none of our read-only covers."""
    (stage.ws / "place").mkdir()
    return stage.attack("mount", "proc", stage.ws / "place", bare=["unshare", "-rmpf"]).won


@attack(users=("root",))
def mount_the_devices(stage):
    (stage.ws / "place").mkdir()
    return stage.attack("mount", "devtmpfs", stage.ws / "place", bare=["unshare", "-m"]).won


@attack()
def mount_by_the_new_calls(stage):
    return stage.attack("fsopen", "tmpfs", bare=BARE).won


@attack()
def overlay_the_host(stage):
    """CVE-2026-41163: an overlay lends write access to what lies below."""
    for name in ("upper", "work", "place"):
        (stage.ws / name).mkdir()
    return stage.attack("overlay", stage.out, stage.ws / "upper", stage.ws / "work",
                        stage.ws / "place", bare=BARE).won


@attack()
def pivot_the_root(stage):
    (stage.ws / "place").mkdir()
    return stage.attack("pivot", stage.ws / "place", bare=BARE).won


@attack()
def change_the_root(stage):
    return stage.attack("chroot", stage.ws, bare=BARE).won


@attack()
def mount_with_the_tool(stage):
    """mount(8) is setuid on most hosts."""
    (stage.ws / "place").mkdir()
    return stage.shell('mount --bind "$1" place && echo @won', stage.out, bare=BARE).won
