"""Who is let in to a WebSocket listener: the flags, capability tokens, signed tokens."""
import base64
import hashlib
import hmac
import json
import time

import pytest

from harness import WAIT
from test_rpc import ECHO, Server
from ws_client import Client, Refused, http_get

SECRET = b"0123456789abcdef0123456789abcdef"
TOKEN = "s3cret-token"


def url64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(claims=None, secret=SECRET, header=None, digest="sha256", **more):
    """A token that is good until asked otherwise."""
    claims = {"exp": time.time() + 1000, **more} if claims is None else claims
    header = {"alg": "HS256", "typ": "JWT"} if header is None else header
    text = ".".join(url64(json.dumps(part).encode()) for part in (header, claims))
    return text + "." + url64(hmac.new(secret, text.encode(), digest).digest())


def is_allowed(server, header):
    try:
        Client.connect(server.url, fields={} if header is None else {"Authorization": header}).close()
    except Refused as refused:
        # the same for every reason, and no word on which it was
        assert refused.status == 401 and refused.reply.body == b"unauthorized"
        assert "www-authenticate" not in refused.reply.fields
        return False
    return True


@pytest.fixture
def secret_file(place):
    path = place.base / "secret"
    path.write_bytes(b"\n  " + SECRET + b" \r\n")
    return path


@pytest.fixture
def token_file(place):
    path = place.base / "token"
    path.write_text(f"\t{TOKEN}\n\n")
    return path


@pytest.mark.parametrize("how", ["file", "sha256"])
def test_capability_token(place, token_file, how):
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    source = (["--ws-token-file", token_file] if how == "file"
              else ["--ws-token-sha256", digest.upper()])
    server = Server(place, "--ws-auth", "capability-token", *source)
    for header in (f"Bearer {TOKEN}", f"bEARER   {TOKEN} ", f"Bearer\t{TOKEN}"):
        assert is_allowed(server, header), header
    for header in (None, "", TOKEN, "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer{TOKEN}",
                   f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN} x",
                   f"Bearer {TOKEN.upper()}", f"Bearer {digest}"):
        assert not is_allowed(server, header), header


def test_pages_and_auth(place, token_file):
    server = Server(place, "--ws-auth", "capability-token", "--ws-token-file", token_file)
    assert http_get(server.url, "/readyz").status == 200
    assert http_get(server.url, "/metrics").status == 401
    good = {"Authorization": f"Bearer {TOKEN}"}
    assert http_get(server.url, "/metrics", fields=good).status == 200
    assert http_get(server.url, "/", fields={**good, "Origin": "x"}).status == 403
    assert http_get(server.url, "/").status == 401
    assert http_get(server.url, "/", fields=good).status == 400


def test_other_hosts_may_connect_when_there_is_auth(place, token_file):
    server = Server(place, "--ws-auth", "capability-token", "--ws-token-file", token_file,
                    listens=("ws://0.0.0.0:0", f"unix:{place.base}/s"))
    server.url = server.url.replace("0.0.0.0", "127.0.0.1")
    assert is_allowed(server, f"Bearer {TOKEN}")
    with Client.connect(server.urls[1], websocket=True) as client:  # known by its uid
        assert client.call("echo", 1) == 1


NOW = 1000  # seconds from now that are far enough for either side

SIGNED = [
    (jwt, True),
    (lambda: jwt(nbf=time.time() - NOW), True),
    (lambda: jwt({"exp": time.time() - 10}), True),                 # within the skew
    (lambda: jwt(nbf=time.time() + 10), True),
    (lambda: jwt(header={"alg": "HS256"}), True),
    (lambda: jwt({"exp": int(time.time()) + NOW, "nbf": 0, "aud": 5, "iss": []}), True),
    (lambda: jwt({"exp": time.time() - NOW}), False),
    (lambda: jwt(nbf=time.time() + NOW), False),
    (lambda: jwt(nbf="soon"), False),
    (lambda: jwt({}), False),                                       # no exp
    (lambda: jwt({"exp": "2100-01-01"}), False),
    (lambda: jwt([]), False),
    (lambda: jwt(secret=b"x" * 32), False),
    (lambda: jwt(secret=SECRET + b" "), False),
    (lambda: jwt(digest="sha512"), False),
    (lambda: jwt(header={"alg": "HS512"}), False),
    (lambda: jwt(header={"alg": "HS512"}, digest="sha512"), False),
    (lambda: jwt(header={"alg": "none"}), False),
    (lambda: jwt(header={"alg": "none"}).rpartition(".")[0] + ".", False),
    (lambda: jwt(header={}), False),
    (lambda: jwt(header={"alg": "HS256", "crit": ["exp"]}), False),
    (lambda: jwt().rpartition(".")[0], False),
    (lambda: jwt() + ".x", False),
    (lambda: jwt() + "=", False),
    (lambda: jwt()[:-1], False),
    (lambda: "." + jwt(), False),
    (lambda: "..", False),
    (lambda: SECRET.decode(), False),
]


def test_signed_tokens(place, secret_file):
    server = Server(place, "--ws-auth", "signed-bearer-token",
                    "--ws-shared-secret-file", secret_file)
    for index, (make, allowed) in enumerate(SIGNED):
        assert is_allowed(server, f"Bearer {make()}") == allowed, index
    assert not is_allowed(server, None)


def test_signed_tokens_with_issuer_audience_and_skew(place, secret_file):
    server = Server(place, "--ws-auth", "signed-bearer-token", "--ws-shared-secret-file",
                    secret_file, "--ws-issuer", "me", "--ws-audience", "cordon",
                    "--ws-max-clock-skew-seconds", "0")
    good = {"iss": "me", "aud": "cordon"}
    for claims, allowed in [
            (good, True),
            ({**good, "aud": ["x", "cordon"]}, True),
            ({**good, "aud": ["x"]}, False),
            ({**good, "aud": []}, False),
            ({**good, "aud": {"cordon": "cordon"}}, False),
            ({**good, "iss": "you"}, False),
            ({**good, "iss": ["me"]}, False),
            ({"iss": "me"}, False),
            ({"aud": "cordon"}, False),
            ({**good, "exp": time.time() - 5}, False),
            ({**good, "nbf": time.time() + 60}, False)]:
        assert is_allowed(server, "Bearer " + jwt(**claims)) == allowed, claims


@pytest.mark.parametrize("words, says", [
    (["--ws-token-file", "f"], "--ws-auth capability-token"),
    (["--ws-issuer", "f"], "--ws-auth signed-bearer-token"),
    (["--ws-auth", "none"], "is none of user-token, capability-token, signed-bearer-token, own-processes, anybody"),
    (["--ws-auth", "capability-token"], "--ws-token-sha256"),
    (["--ws-auth", "capability-token", "--ws-token-file", "secret", "--ws-token-sha256", "0" * 64],
     "either"),
    (["--ws-auth", "capability-token", "--ws-token-file", "secret", "--ws-audience", "x"],
     "--ws-audience"),
    (["--ws-auth", "capability-token", "--ws-token-file", "missing"], "missing"),
    (["--ws-auth", "capability-token", "--ws-token-file", "empty"], "no token"),
    (["--ws-auth", "capability-token", "--ws-token-sha256", "0" * 63], "64 hex"),
    (["--ws-auth", "capability-token", "--ws-token-sha256", "g" * 64], "64 hex"),
    (["--ws-auth", "signed-bearer-token"], "--ws-shared-secret-file"),
    (["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "short"], "32 bytes"),
    (["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "secret",
      "--ws-max-clock-skew-seconds", "-1"], "--ws-max-clock-skew-seconds"),
    (["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "secret",
      "--ws-token-file", "secret"], "--ws-token-file"),
])
def test_flags_that_do_not_go_together(place, words, says):
    for name, text in (("secret", SECRET), ("short", b" " * 40 + b"x" * 31), ("empty", b" \n")):
        (place.ws / name).write_bytes(text)
    process = place.start(*words, "ws://127.0.0.1:0", program=ECHO)
    out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 1 and out == b""
    assert says in err.decode() and err.count(b"\n") == 1
    assert SECRET not in err
