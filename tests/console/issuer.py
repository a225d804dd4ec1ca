"""A small issuer of OpenID Connect: signs everybody in as dana, after a click. Tokens are signed with RSA."""

import base64
import hashlib
import http.server
import json
import secrets
import threading
import time
import urllib.parse

CLIENT = "console"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value):
    return encode(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def is_prime(n):
    """Miller and Rabin, often enough for a key that lives for a minute."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(20):
        x = pow(secrets.randbelow(n - 3) + 2, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime(bits):
    while True:
        n = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if all(n % small for small in (3, 5, 7, 11, 13, 17, 19, 23)) and n % 65537 != 1 and is_prime(n):
            return n


class Issuer:
    """Answers on loopback under the name `localhost`, which is another site than 127.0.0.1."""

    def __init__(self):
        p, q = prime(1024), prime(1024)
        self.modulus, self.secret = p * q, pow(65537, -1, (p - 1) * (q - 1))
        self.codes = {}
        issuer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.get(self)

            def do_POST(self):
                issuer.post(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.place = f"http://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def config(self):
        return (f'[oidc]\nissuer = "{self.place}"\naudience = "programs"\njwks_url = "{self.place}/jwks"\n'
                f'client_id = "{CLIENT}"\n')

    def end(self):
        self.server.shutdown()

    def get(self, call):
        path, _, query = call.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        if path == "/.well-known/openid-configuration":
            return say(call, 200, {"issuer": self.place, "authorization_endpoint": self.place + "/authorize",
                                   "token_endpoint": self.place + "/token", "jwks_uri": self.place + "/jwks"})
        if path == "/jwks":
            return say(call, 200, {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one",
                                             "n": number(self.modulus), "e": "AQAB"}]})
        if path == "/authorize":
            assert asked["client_id"] == CLIENT and asked["code_challenge_method"] == "S256", asked
            code = secrets.token_urlsafe()
            self.codes[code] = asked
            back = asked["redirect_uri"] + "?" + urllib.parse.urlencode(
                {"code": code, "state": asked["state"], "iss": self.place, "session_state": "x"})
            page = f"<!doctype html><title>Issuer</title><a id=yes href='{back.replace('&', '&amp;')}'>I am dana</a>"
            return say(call, 200, page)
        say(call, 404, "nothing here")

    def post(self, call):
        form = dict(urllib.parse.parse_qsl(call.rfile.read(int(call.headers["content-length"])).decode()))
        asked = self.codes.pop(form["code"], None)
        verifier = encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        if not asked or asked["code_challenge"] != verifier or asked["redirect_uri"] != form["redirect_uri"]:
            return say(call, 400, {"error": "invalid_grant"})
        now = int(time.time())
        claims = {"iss": self.place, "aud": CLIENT, "sub": "dana", "nonce": asked["nonce"], "iat": now, "exp": now + 60,
                  "countersign_role": "approver", "countersign_tenant": "default"}
        say(call, 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.sign(claims)})

    def sign(self, claims):
        head = {"alg": "RS256", "kid": "one"}
        text = ".".join(encode(json.dumps(part).encode()) for part in (head, claims))
        # RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 9.2).
        digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(text.encode()).digest()
        padded = b"\x00\x01" + b"\xff" * (256 - 3 - len(digest)) + b"\x00" + digest
        signature = pow(int.from_bytes(padded, "big"), self.secret, self.modulus)
        return f"{text}.{encode(signature.to_bytes(256, 'big'))}"


def say(call, status, body):
    is_page = isinstance(body, str)
    data = (body if is_page else json.dumps(body)).encode()
    call.send_response(status)
    call.send_header("Content-Type", "text/html" if is_page else "application/json")
    call.send_header("Content-Length", str(len(data)))
    call.end_headers()
    call.wfile.write(data)
