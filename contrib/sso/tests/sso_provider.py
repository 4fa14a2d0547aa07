"""A small OpenID Connect provider on real sockets that sends false data on request."""

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
    """Log in every visitor with ``claims``.

    ``claims`` replace the correct ones; a claim ``None`` is left out. ``key`` and ``algorithm`` sign the ID token;
    ``discovery`` replaces values of the discovery document, ``tokens`` values of the token response; ``userinfo`` is
    the
    response to a bearer of the token."""

    def __init__(self) -> None:
        self.right_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.other_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.codes: dict[str, dict[str, str]] = {}
        self.requested_paths: list[str] = []
        self.reset()
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

    def reset(self, sub: str = "subject", **claims: Any) -> None:
        """Be honest again, for this subject."""
        self.claims: dict[str, Any] = {"sub": sub, **claims}
        self.key: Any = self.right_key
        self.algorithm = "RS256"
        self.discovery: dict[str, Any] = {}
        self.tokens: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}

    def answer(self, to: BaseHTTPRequestHandler, body: str) -> None:
        """Answer one request."""
        url = urlsplit(to.path)
        params = {name: texts[0] for name, texts in parse_qs(body or url.query).items()}
        self.requested_paths.append(url.path)
        if url.path == "/authorize":
            code = secrets.token_hex(8)
            self.codes[code] = params
            to.send_response(302)
            to.send_header(
                "Location", f"{params['redirect_uri']}?{urlencode({'code': code, 'state': params['state']})}"
            )
            to.end_headers()
            return
        payload = {
            "/.well-known/openid-configuration": self._discovery,
            "/jwks": self._keys,
            "/token": lambda: self._token(params),
            "/userinfo": lambda: self.userinfo,
        }[url.path]()
        to.send_response(200 if "error" not in payload else 400)
        to.send_header("Content-Type", "application/json")
        to.end_headers()
        to.wfile.write(json.dumps(payload).encode())

    def _discovery(self) -> dict[str, Any]:
        endpoints = {name: f"{self.issuer}/{path}" for name, path in ENDPOINT_PATHS.items()}
        return {"issuer": self.issuer, **endpoints, **self.discovery}

    def _keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.right_key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def _token(self, params: dict[str, str]) -> dict[str, Any]:
        authorization = self.codes.pop(params["code"], {})
        digest = hashlib.sha256(params.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (params.get("client_id"), params.get("client_secret")) != (CLIENT, SECRET):
            return {"error": "invalid_client"}
        if proof != authorization.get("code_challenge") or params["redirect_uri"] != authorization["redirect_uri"]:
            return {"error": "invalid_grant"}
        now = int(time.time())
        defaults = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": authorization.get("nonce"),
        }
        claims = {name: value for name, value in {**defaults, **self.claims}.items() if value is not None}
        signed = jwt.encode(claims, self.key, algorithm=self.algorithm, headers={"kid": "one"})
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": signed, **self.tokens}


ENDPOINT_PATHS = {
    "authorization_endpoint": "authorize",
    "token_endpoint": "token",
    "jwks_uri": "jwks",
    "userinfo_endpoint": "userinfo",
}
