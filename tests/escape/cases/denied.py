"""Reading what is denied: by its path, by other names for it, by moving it, by another mount."""

import os

from catalogue import attack

SECRET = "the-secret\n"


def denied_file(stage, name="outside/secret"):
    return stage.file(name, SECRET)


def has_secret(ran):
    return SECRET.strip() in ran.out


@attack()
def read_a_file(stage):
    file = denied_file(stage)
    return has_secret(stage.attack("read", file, cordon=["--deny", file]))


@attack()
def read_below_a_folder(stage):
    file = denied_file(stage, "outside/vault/secret")
    return has_secret(stage.attack("read", file, cordon=["--deny", stage.out / "vault"]))


@attack()
def list_a_folder(stage):
    denied_file(stage, "outside/vault/the-secret")
    return has_secret(stage.shell('ls -a "$1"', stage.out / "vault",
                                  cordon=["--deny", stage.out / "vault"]))


@attack()
def read_by_dot_dot(stage):
    file = denied_file(stage)
    return has_secret(stage.attack("read", f"{stage.ws}/../outside/../outside/secret",
                                   cordon=["--deny", file]))


@attack()
def read_through_a_symlink(stage):
    file = denied_file(stage)
    return has_secret(stage.shell('ln -s "$1" link && cat link', file, cordon=["--deny", file]))


@attack()
def read_through_a_symlink_to_its_folder(stage):
    """CVE-2026-25724: a link defeats the deny rule."""
    file = denied_file(stage)
    (stage.ws / "link").symlink_to(stage.out)
    return has_secret(stage.attack("read", stage.ws / "link/secret", cordon=["--deny", file]))


@attack()
def read_what_the_denied_path_links_to(stage):
    """The user denies a link: what it leads to is meant."""
    file = denied_file(stage, "outside/target")
    (stage.out / "link").symlink_to("target")
    return has_secret(stage.attack("read", file, cordon=["--deny", stage.out / "link"]))


@attack()
def read_through_a_hard_link_made_inside(stage):
    file = denied_file(stage, "ws/secret")
    return has_secret(stage.attack("link-read", file, stage.ws / "other",
                                   cordon=["--deny", file]))


@attack()
def read_by_proc_self_root(stage):
    file = denied_file(stage)
    return has_secret(stage.attack("read", f"/proc/self/root{file}", cordon=["--deny", file]))


@attack()
def read_by_a_host_process_root(stage):
    file, victim = denied_file(stage), stage.victim()
    return has_secret(stage.attack("read", f"/proc/{victim.pid}/root{file}",
                                   cordon=["--deny", file]))


@attack()
def read_by_an_inherited_folder(stage):
    file = denied_file(stage)
    folder = stage.open(stage.out, os.O_RDONLY | os.O_DIRECTORY)
    return has_secret(stage.attack("read", f"/proc/self/fd/{folder}/secret", fds=[folder],
                                   cordon=["--deny", file]))


@attack()
def read_after_renaming_it(stage):
    file = denied_file(stage, "ws/secret")
    return has_secret(stage.shell('mv secret other; cat other', cordon=["--deny", file]))


@attack()
def read_after_renaming_its_folder(stage):
    file = denied_file(stage, "ws/keys/secret")
    return has_secret(stage.shell('mv keys other; cat other/secret', cordon=["--deny", file]))


@attack(refusal_holds=True)
def read_in_the_next_run_after_renaming_its_folder(stage):
    """The mask goes with the folder, but the next run masks the old path."""
    file = denied_file(stage, "ws/a/keys/secret")
    stage.shell("mv a b", cordon=["--deny", file])
    return has_secret(stage.shell("cat b/keys/secret", cordon=["--deny", file]))


@attack()
def read_by_glob(stage):
    file = denied_file(stage, "ws/deep/down/server.pem")
    return has_secret(stage.attack("read", file, cordon=["--deny", f"{stage.ws}/**/*.pem"]))


@attack()
def read_a_hidden_file_by_glob(stage):
    file = denied_file(stage, "ws/sub/.env")
    return has_secret(stage.attack("read", file, cordon=["--deny", f"{stage.ws}/**/.env"]))


@attack(refusal_holds=True)
def read_what_a_globbed_link_leads_to(stage):
    file = denied_file(stage, "outside/target")
    (stage.ws / "link.pem").symlink_to(file)
    return has_secret(stage.attack("read", stage.ws / "link.pem",
                                   cordon=["--deny", f"{stage.ws}/*.pem"]))


@attack()
def read_beside_a_writable_folder_in_a_denied_one(stage):
    denied_file(stage, "outside/vault/secret")
    (stage.out / "vault/open").mkdir()
    return has_secret(stage.shell(
        'cd "$1/open" && cat ../secret "$1/secret"', stage.out / "vault",
        cordon=["--deny", stage.out / "vault", "--writable", stage.out / "vault/open"]))


@attack()
def write_to_a_denied_file_in_the_workspace(stage):
    file = denied_file(stage, "ws/secret")
    stage.attack("write", file, cordon=["--deny", file])
    return stage.is_changed(file, SECRET)


@attack(refusal_holds=True)
def create_a_denied_file_that_is_missing(stage):
    file = stage.ws / "later"
    stage.shell('echo planted > later', cordon=["--deny", file])
    return file.exists() and "planted" in file.read_text()


@attack()
def execute_a_denied_program(stage):
    program = stage.file("outside/tool", f"#!/bin/sh\necho {SECRET}", 0o755)
    return has_secret(stage.shell('"$1"', program, cordon=["--deny", program]))


@attack(users=("root",))
def open_by_handle(stage):
    """The handle of a file names it on any mount of its file system (shocker)."""
    file = denied_file(stage)
    handle = stage.tool("handle", file).split("@handle ")[1].strip()
    return has_secret(stage.attack("open-handle", stage.ws, handle, cordon=["--deny", file]))


@attack()
def unmask(stage):
    """Bare, the attack takes the mask off that it put there itself, in a mount namespace."""
    file = denied_file(stage, "outside/vault/secret")
    vault = stage.out / "vault"
    bare = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs none {vault}; exec "$@"', "sh"]
    return has_secret(stage.attack("unmask", vault, file, bare=bare, cordon=["--deny", vault]))


@attack()
def see_it_by_another_mount(stage):
    """A bind mount of the parent under another name shows what the mask hides."""
    file = denied_file(stage)
    (stage.ws / "copy").mkdir()
    bare = ["unshare", "-rm"]
    return has_secret(stage.shell('mount --bind "$1" copy && cat copy/secret', stage.out,
                                  bare=bare, cordon=["--deny", file]))


@attack(refusal_holds=True)
def deny_everything_but_the_workspace(stage):
    """A denied folder whose name is also a prefix of the workspace."""
    file = denied_file(stage)
    return has_secret(stage.attack("read", file, cordon=["--deny", stage.out, "--readable",
                                                         stage.base]))
