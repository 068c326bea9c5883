"""Where tests have their folders."""

import os
import tempfile


def make_base():
    """All tests have their folders in $CORDON_TESTS: not in /tmp or /var/tmp, which commands have of their
    own. It is in /srv where that can be written, else at home."""
    parent = "/srv" if os.access("/srv", os.W_OK) else os.path.expanduser("~")
    folder = tempfile.mkdtemp(prefix="cordon-tests-", dir=parent)
    os.chmod(folder, 0o1777)
    os.environ["CORDON_TESTS"] = folder
    return folder
