"""A small OpenID Connect provider on real sockets, which lies where a test asks it to."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "concord", "hush"


class SsoProvider:
    """Logs in as ``claims`` whoever comes. ``claims`` go over those that would be right; a claim ``None`` is left out.

    ``key``, ``algorithm`` sign the ID token; ``discovery`` goes over what the provider says of itself; ``tokens`` over
    the answer with the tokens; ``userinfo`` is said to whoever shows the token.
    """

    def __init__(self) -> None:
        self.right_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.other_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.be()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.answer(self, "")

            def do_POST(self) -> None:
                provider.answer(self, self.rfile.read(int(self.headers["Content-Length"])).decode())

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def be(self, sub: str = "subject", **claims: Any) -> None:
        """Honest again, for this subject."""
        self.claims: dict[str, Any] = {"sub": sub, **claims}
        self.key: Any = self.right_key
        self.algorithm = "RS256"
        self.discovery: dict[str, Any] = {}
        self.tokens: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}

    def answer(self, to: BaseHTTPRequestHandler, body: str) -> None:
        """One request."""
        parts = urlsplit(to.path)
        told = {name: texts[0] for name, texts in parse_qs(body or parts.query).items()}
        self.asked.append(parts.path)
        if parts.path == "/authorize":
            code = secrets.token_hex(8)
            self.codes[code] = told
            to.send_response(302)
            to.send_header("Location", f"{told['redirect_uri']}?{urlencode({'code': code, 'state': told['state']})}")
            to.end_headers()
            return
        said = {
            "/.well-known/openid-configuration": self._discovery,
            "/jwks": self._keys,
            "/token": lambda: self._token(told),
            "/userinfo": lambda: self.userinfo,
        }[parts.path]()
        to.send_response(200 if "error" not in said else 400)
        to.send_header("Content-Type", "application/json")
        to.end_headers()
        to.wfile.write(json.dumps(said).encode())

    def _discovery(self) -> dict[str, Any]:
        places = {name: f"{self.issuer}/{path}" for name, path in PLACES.items()}
        return {"issuer": self.issuer, **places, **self.discovery}

    def _keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.right_key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def _token(self, told: dict[str, str]) -> dict[str, Any]:
        asked = self.codes.pop(told["code"], {})
        digest = hashlib.sha256(told.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (told.get("client_id"), told.get("client_secret")) != (CLIENT, SECRET):
            return {"error": "invalid_client"}
        if proof != asked.get("code_challenge") or told["redirect_uri"] != asked["redirect_uri"]:
            return {"error": "invalid_grant"}
        now = int(time.time())
        right = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked.get("nonce")}
        claims = {name: value for name, value in {**right, **self.claims}.items() if value is not None}
        signed = jwt.encode(claims, self.key, algorithm=self.algorithm, headers={"kid": "one"})
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": signed, **self.tokens}


PLACES = {
    "authorization_endpoint": "authorize",
    "token_endpoint": "token",
    "jwks_uri": "jwks",
    "userinfo_endpoint": "userinfo",
}
