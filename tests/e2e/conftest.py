"""Fixtures of the end-to-end tests."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import Place  # noqa: E402


@pytest.fixture
def place(request):
    place = Place()
    with place.cleanup:
        if request.path.name.startswith("test_tools_"):
            place.watch_all()
        yield place
        assert place.of_cordon() == []
