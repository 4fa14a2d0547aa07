"""Logging in by name and password, and who is asking, looked up before anything else by statements
(``storage/statements.py`` says why). Sessions are Django's, in the database.

Failed attempts are kept in the database, so that every web process counts, names and addresses as keyed hashes only,
for a day. Within fifteen minutes: ten failures of one name from one address, or fifty from anywhere, and the name has
to wait until the oldest of them is that old; failures of thirty names from one address, and that address has to. A
right password does not help meanwhile; it is not even looked at.
"""

import hashlib
import math
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.tokens import default_token_generator
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from evaluation.accounts import audit
from evaluation.models import ApiToken, FailedLogin, User
from evaluation.storage.statements import Statement

#: A session that has not expired.
SESSION = Statement(
    "SELECT {s} FROM django_session s WHERE s.session_key = %(key)s AND s.expire_date > %(now)s", s=Session
)
USER = Statement("SELECT {u} FROM evaluation_user u WHERE u.id = %(user)s", u=User)
#: A token by its hash, whatever its state, with its owner.
TOKEN = Statement(
    "SELECT {t}, {u} FROM evaluation_apitoken t JOIN evaluation_user u ON u.id = t.user_id WHERE t.sha256 = %(sha256)s",
    t=ApiToken,
    u=User,
)


class SessionStore(db.SessionStore):
    """As Django's own; ended sessions are gone at once, because nothing is kept between requests."""

    def _get_session_from_db(self) -> Session | None:
        row = SESSION.first(key=self.session_key, now=timezone.now())
        if row is None:
            self._session_key = None
            return None
        session: Session = row[0]
        return session


PREFIX = "concord_"
LONGEST_TOKEN = timedelta(days=365)


def password_link(person: User) -> str:
    """The path at which the person chooses a password, without host: good once, for ``PASSWORD_RESET_TIMEOUT``
    seconds, until the next log-in."""
    uid = urlsafe_base64_encode(force_bytes(person.pk))
    return reverse("password-choose", args=[uid, default_token_generator.make_token(person)])


def new_token() -> tuple[str, str]:
    """A token of 256 random bits, and its SHA-256 as the table keeps it."""
    text = PREFIX + secrets.token_urlsafe(32)
    return text, hashlib.sha256(text.encode()).hexdigest()


WINDOW = timedelta(minutes=15)
KEPT = timedelta(days=1)
FROM_ONE_ADDRESS = 10
FROM_ANYWHERE = 50
NAMES_FROM_ONE_ADDRESS = 30
#: What the audit log calls a log-in, and a right password where that may not be all.
LOGGED_IN, RIGHT_PASSWORD = "login.succeeded", "login.password"
#: Marks a session that a provider vouched for: what else to ask is its matter.
BY_PROVIDER = "logged_in_by_provider"
_SALT = "evaluation.accounts.logging_in"


def wait_until(name: str, address: str) -> datetime | None:
    """When the name may be tried again from an address; ``None`` for now."""
    recent = FailedLogin.objects.filter(created_at__gt=timezone.now() - WINDOW).order_by("-created_at")
    failures = list(recent.filter(name=_hashed(name)).values_list("created_at", "address")[:FROM_ANYWHERE])
    tried: dict[str, datetime] = {}
    for whose, at in recent.filter(address=_hashed(address)).values_list("name", "created_at"):
        tried.setdefault(whose, at)
    counted = [
        ([at for at, whence in failures if whence == _hashed(address)], FROM_ONE_ADDRESS),
        ([at for at, _ in failures], FROM_ANYWHERE),
        (list(tried.values()), NAMES_FROM_ONE_ADDRESS),
    ]
    return max((at[limit - 1] + WINDOW for at, limit in counted if len(at) >= limit), default=None)


def failed(name: str, address: str, **detail: Any) -> None:
    """Remember a failed attempt, and forget those of yesterday. ``detail`` is what the audit log says beside it."""
    FailedLogin.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    row = FailedLogin.objects.create(name=_hashed(name), address=_hashed(address))
    person = User.objects.filter(username=name).values_list("pk", flat=True).first()
    audit.record(None, "login.failed", row, **{"person": person, **detail})


def succeeded(person: User, name: str, address: str, verb: str = LOGGED_IN, **detail: Any) -> None:
    """Forget the failures of a name from the address it logged in from; ``verb`` is what the audit log calls it."""
    FailedLogin.objects.filter(name=_hashed(name), address=_hashed(address)).delete()
    audit.record(person, verb, person, **detail)


def _hashed(text: str) -> str:
    return salted_hmac(_SALT, text.strip().casefold(), algorithm="sha256").hexdigest()


class LimitedBackend(ModelBackend):
    """Django's own check of a password, refused without a look while too many attempts have failed.

    It stands behind every door: our log-in page, the back office and whatever else calls ``authenticate``.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """The person; ``None`` for a wrong name or password.

        :raises PermissionDenied: while the name has to wait.
        """
        if username is None or password is None:
            return None
        address = address_of(request)
        if wait_until(username, address):
            raise PermissionDenied
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None:
            failed(username, address)
        else:
            all_of_it = settings.CONCORD_SECOND_FACTOR == "off"
            succeeded(user, username, address, LOGGED_IN if all_of_it else RIGHT_PASSWORD)
        return user

    def get_user(self, user_id: int) -> User | None:
        """The person of a session, who may still log in."""
        row = USER.first(user=user_id)
        return row[0] if row and self.user_can_authenticate(row[0]) else None

    def user_can_authenticate(self, user: Any) -> bool:
        """Whoever is active, but for service users, who work by tokens."""
        return super().user_can_authenticate(user) and not user.is_service


def address_of(request: HttpRequest | None) -> str:
    """Where a request comes from: as the web server says, or a trusted proxy (``CONCORD_TRUSTED_PROXIES``)."""
    return "" if request is None else str(request.META.get("REMOTE_ADDR", ""))


def minutes_to_wait(username: str, request: HttpRequest | None) -> int:
    """How many minutes until the name may be tried again from here; 0 for now."""
    until = wait_until(username, address_of(request))
    return 0 if until is None else max(1, math.ceil((until - timezone.now()).total_seconds() / 60))
