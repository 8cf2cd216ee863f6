"""The signed caller that services of a deployment believe; see `common/src/identity.rs` of the project."""

import base64
import hashlib
import hmac
import json
import time

METADATA = "x-atelier-identity"
LIFETIME = 600


def sign(secret: str, user: str, scopes: tuple[str, ...] = ("*",)) -> str:
    """The value of the metadata key for a user, good for ten minutes: long enough to open a stream."""
    claims = {"u": user, "s": list(scopes), "e": int(time.time()) + LIFETIME}
    body = _text(json.dumps(claims, separators=(",", ":")).encode())
    key = hashlib.sha256(secret.encode()).digest()
    return f"{body}.{_text(hmac.new(key, body.encode(), hashlib.sha256).digest())}"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
