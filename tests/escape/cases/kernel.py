"""The kernel's surface: calls that no build or test needs and that exploits love."""

from catalogue import attack


@attack(holes=(8,))
def io_uring(stage):
    return stage.attack("ring-setup").won


@attack(holes=(8,))
def write_by_io_uring(stage):
    file = stage.victim_file()
    stage.attack("ring-write", file)
    return stage.is_changed(file)


@attack(users=("root",))
def bpf(stage):
    return stage.attack("bpf").won


@attack(users=("root",))
def perf(stage):
    return stage.attack("perf").won


@attack()
def userfaultfd(stage):
    return stage.attack("userfaultfd").won


@attack(users=("root",))
def fanotify(stage):
    return stage.attack("fanotify").won


@attack(users=("root",))
def accounting(stage):
    return stage.attack("acct").won


@attack(users=("root",))
def kernel_log(stage):
    return stage.attack("syslog").won


@attack(users=("root",))
def clock(stage):
    return stage.attack("settime").won


@attack(users=("root",))
def host_name(stage):
    return stage.attack("hostname").won


@attack(users=("root",))
def swap(stage):
    return stage.attack("swapoff").won


@attack(users=("root",))
def reboot(stage):
    return stage.attack("reboot").won


@attack()
def trace_a_host_process(stage):
    return stage.attack("ptrace", stage.victim().pid).won


@attack()
def trace_init(stage):
    """Tracing works inside, but not on the launcher."""
    return stage.attack("ptrace", 1 if stage.inside else stage.victim().pid).won


@attack()
def read_memory_of_a_host_process(stage):
    victim = stage.victim()
    return victim.secret in stage.attack("vm-read", victim.pid, victim.address).out


@attack()
def write_memory_of_a_host_process(stage):
    victim = stage.victim()
    stage.attack("vm-write", victim.pid, victim.address)
    return victim.is_changed()


@attack()
def compare_with_a_host_process(stage):
    return stage.attack("kcmp", stage.victim().pid).won


@attack(users=("root",))
def advise_a_host_process(stage):
    victim = stage.victim()
    return stage.attack("madvise", victim.pid, victim.address).won


@attack(machine="x86_64")
def call_by_the_32_bit_table(stage):
    """getpid by int 0x80: a filter that looks at numbers only takes it for writev."""
    return stage.attack("int80", 20).won
