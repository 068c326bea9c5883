"""What the tests of `cordon learn` share."""
import os

CACHES = (".cache", ".npm", ".cargo/registry", ".cargo/git", "go/pkg", ".m2/repository", ".local/state")
CONFIG = "home/.config/cordon/config.toml"


def learn(place, name, script, *options, **kwargs):
    return place.cordon("learn", "-o", name, *options, "--", "sh", "-c", script, **kwargs)


def opened(place, name):
    """What the profile adds: paths below home, and other things."""
    differences = place.json("explain", "--json", "--diff", name)["differences"]
    paths = {os.path.relpath(one["path"], place.home) for one in differences if one["what"] == "path"}
    return paths, [one for one in differences if one["what"] != "path"]


def check(place, script, *options, others=(), again="", **kwargs):
    """Learns, and tries the profile: only caches are opened, and the same passes. The paths that it opens."""
    ran = learn(place, "task", script, *options, **kwargs)
    assert ran.returncode == 0, ran.stderr
    text = (place.base / CONFIG).read_text()
    paths, differences = opened(place, "task")
    for path in paths:
        assert any(path == cache or path.startswith(cache + "/") for cache in CACHES), text
        assert path not in (".cache", ".npm", "go/pkg"), text
    assert [one["what"] for one in differences] == list(others), text
    ran = place.run("-p", "task", "--", "sh", "-c", again + script, **kwargs)
    assert ran.returncode == 0, (ran.stderr, text)
    return paths
