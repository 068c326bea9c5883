"""Where the program `cordon` is, for a server of our own."""
from __future__ import annotations

import importlib.metadata
import os
import pathlib
from typing import Iterator, List

from .errors import ProgramNotFound


def _installed() -> Iterator[str]:
    """Where pip has put that of the wheel which this package came in."""
    packages = pathlib.Path(__file__).resolve().parent.parent
    for wheel in importlib.metadata.distributions(name="cordon", path=[str(packages)]):
        for file in wheel.files or ():
            if file.parts[-2:] == ("bin", "cordon"):
                yield os.path.normpath(str(file.locate()))
    yield str(packages / "bin/cordon")  # of pip install --target


def _candidates() -> Iterator[str]:
    yield from _installed()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if folder.startswith("/"):  # what lies in the current folder may be a command's work
            yield os.path.join(folder, "cordon")


def find() -> str:
    """That of this wheel, else the first on the PATH."""
    for path in _candidates():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise ProgramNotFound("the program `cordon` is neither that of a wheel with this package, nor in an absolute folder of the PATH",
                          "install Cordon, or say where it is: spawn([\"/path/to/cordon\", \"serve\", "
                          "\"--listen\", \"stdio\"])")


def serve() -> List[str]:
    """The command of a server on standard input and output."""
    return [find(), "serve", "--listen", "stdio"]
