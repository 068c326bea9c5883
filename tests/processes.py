"""Other processes, as /proc shows them: each may end while it is looked at, and one that has ended has no children, no
name and no state."""
import os


def text_of(pid, name):
    """A process may end between the opening of a file and its reading: that is ESRCH, not ENOENT."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for task in tasks for word in text_of(pid, f"task/{task}/children").split()]


def descendants(pid):
    found = children(pid)
    for each in found:
        found += children(each)
    return found


def name_of(pid):
    return text_of(pid, "comm").strip()


def stat_of(pid):
    """The fields of /proc/PID/stat from the third (the state) on."""
    return text_of(pid, "stat").rpartition(")")[2].split()


def has_ended(pid):
    """Perhaps nobody has waited for it."""
    return stat_of(pid)[:1] in ([], ["Z"], ["X"])
