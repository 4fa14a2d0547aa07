"""Login by name and password, sessions in the database, and limits for failed attempts.

Failed attempts are stored for 30 days, as keyed hashes of name and address, so that every web process counts them and
administrators see them. Within fifteen minutes, a name is blocked after ten failures from one address or fifty from
anywhere; an address is blocked after failures of thirty names. All addresses of an IPv6 /64 count as one. The block
ends when the oldest of these failures is fifteen minutes old. Passwords are not checked while it lasts. Sessions, users
and tokens are read by SQL statements (``storage/statements.py`` says why).
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
from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from evaluation.accounts import audit
from evaluation.core.addresses import client_network
from evaluation.models import ApiToken, FailedLogin, User
from evaluation.storage.statements import Statement

#: A session that has not expired.
SESSION = Statement(
    "SELECT {s} FROM django_session s WHERE s.session_key = %(key)s AND s.expire_date > %(now)s", s=Session
)
USER = Statement("SELECT {u} FROM evaluation_user u WHERE u.id = %(user)s", u=User)
#: A token by its hash, expired and revoked ones included, with its owner.
TOKEN = Statement(
    "SELECT {t}, {u} FROM evaluation_apitoken t JOIN evaluation_user u ON u.id = t.user_id WHERE t.sha256 = %(sha256)s",
    t=ApiToken,
    u=User,
)


class SessionStore(db.SessionStore):
    """Django's session store, which forgets an expired session at once because nothing is cached between requests."""

    def _get_session_from_db(self) -> Session | None:
        row = SESSION.first(key=self.session_key, now=timezone.now())
        if row is None:
            self._session_key = None
            return None
        session: Session = row[0]
        return session


TOKEN_PREFIX = "concord_"
MAX_TOKEN_LIFETIME = timedelta(days=365)


def password_link(person: User) -> str:
    """Return the path of the page where the person chooses a password, without host.

    Valid once, for ``PASSWORD_RESET_TIMEOUT`` seconds, until the next login."""
    uid = urlsafe_base64_encode(force_bytes(person.pk))
    return reverse("password-choose", args=[uid, default_token_generator.make_token(person)])


def new_token() -> tuple[str, str]:
    """Create a token of 256 random bits; returns its text and the SHA-256 that the table stores."""
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    return text, hashlib.sha256(text.encode()).hexdigest()


WINDOW = timedelta(minutes=15)
#: Failures of one name from one address within this time are one row with a count.
FAILURE_INTERVAL = timedelta(minutes=1)
FAILURE_RETENTION = timedelta(days=30)
MAX_FAILURES_PER_NAME_AND_ADDRESS = 10
MAX_FAILURES_PER_NAME = 50
MAX_NAMES_PER_ADDRESS = 30
#: Verbs of the audit log: a complete login, and a correct password where a second factor may follow.
LOGGED_IN, PASSWORD_ACCEPTED = "login.succeeded", "login.password"
#: Session key that marks a login by an OpenID Connect provider, which is responsible for further factors.
PROVIDER_SESSION_KEY = "logged_in_by_provider"
_SALT = "evaluation.accounts.login"


def blocked_until(name: str, address: str) -> datetime | None:
    """Return when the name may be tried again from an address; ``None`` if it may be tried now."""
    window_start = timezone.now() - WINDOW
    recent_failures = FailedLogin.objects.filter(created_at__gt=window_start, cleared=False).order_by("-created_at")
    failures = [
        (at, address_hash)
        for at, address_hash, count in recent_failures.filter(name=_keyed_hash(name)).values_list(
            "created_at", "address", "count"
        )[:MAX_FAILURES_PER_NAME]
        for _ in range(count)
    ]
    last_failures: dict[str, datetime] = {}
    for name_hash, at in recent_failures.filter(address=_address_hash(address)).values_list("name", "created_at"):
        last_failures.setdefault(name_hash, at)
    limits = [
        (
            [at for at, address_hash in failures if address_hash == _address_hash(address)],
            MAX_FAILURES_PER_NAME_AND_ADDRESS,
        ),
        ([at for at, _ in failures], MAX_FAILURES_PER_NAME),
        (list(last_failures.values()), MAX_NAMES_PER_ADDRESS),
    ]
    return max((times[limit - 1] + WINDOW for times, limit in limits if len(times) >= limit), default=None)


def record_failure(name: str, address: str, person: int | None = None, by: str = "") -> None:
    """Count a failed attempt, in a row with the others of its minute, and delete expired rows.

    :param person: the account; by default the one with the name.
    :param by: ``code`` for a second factor."""
    purge_failures()
    origin = {"name": _keyed_hash(name), "address": _address_hash(address), "by": by, "cleared": False}
    recent_rows = FailedLogin.objects.filter(**origin, created_at__gt=timezone.now() - FAILURE_INTERVAL)
    if FailedLogin.objects.filter(pk__in=recent_rows.values("pk")[:1]).update(count=F("count") + 1):
        return
    person = person or User.objects.filter(username=name).values_list("pk", flat=True).first()
    FailedLogin.objects.create(person_id=person, **origin)


def purge_failures() -> int:
    """Delete the failed attempts that are older than ``FAILURE_RETENTION``; returns the number of rows."""
    return FailedLogin.objects.filter(created_at__lt=timezone.now() - FAILURE_RETENTION).delete()[0]


def record_success(person: User, name: str, address: str, verb: str = LOGGED_IN, **detail: Any) -> None:
    """Stop counting the failures of a name from the address of a successful login, and write ``verb`` to the audit
    log."""
    FailedLogin.objects.filter(name=_keyed_hash(name), address=_address_hash(address)).update(cleared=True)
    audit.record(person, verb, person, **detail)


def _address_hash(address: str) -> str:
    return _keyed_hash(client_network(address))


def _keyed_hash(text: str) -> str:
    return salted_hmac(_SALT, text.strip().casefold(), algorithm="sha256").hexdigest()


class LimitedBackend(ModelBackend):
    """Django's password check, refused while too many attempts have failed.

    Applies to every caller of ``authenticate``: the login page, the back office and others."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """Return the person, or ``None`` for a wrong name or password.

        :raises PermissionDenied: while the name is blocked."""
        if username is None or password is None:
            return None
        address = client_address(request)
        if blocked_until(username, address):
            raise PermissionDenied
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None:
            record_failure(username, address)
        else:
            password_suffices = settings.CONCORD_SECOND_FACTOR == "off"
            record_success(user, username, address, LOGGED_IN if password_suffices else PASSWORD_ACCEPTED)
        return user

    def get_user(self, user_id: int) -> User | None:
        """Return the person of a session if they may still log in."""
        row = USER.first(user=user_id)
        return row[0] if row and self.user_can_authenticate(row[0]) else None

    def user_can_authenticate(self, user: Any) -> bool:
        """Refuse inactive users, and service users, who use tokens only."""
        return super().user_can_authenticate(user) and not user.is_service


def users_with_address(address: str) -> list[User]:
    """Active people with the e-mail address, whatever the case of its ASCII letters.

    Other letters have to be equal: PostgreSQL's ``UPPER`` makes the ``I`` of the dotless ``ı`` as well, so that
    somebody else's address would match."""
    people = User.objects.filter(email__iexact=address, is_active=True, is_service=False)
    return [person for person in people if person.email.encode().lower() == address.encode().lower()]


def client_address(request: HttpRequest | None) -> str:
    """Return the client's address, as the web server or a trusted proxy (``CONCORD_TRUSTED_PROXIES``) reports it."""
    return "" if request is None else str(request.META.get("REMOTE_ADDR", ""))


def minutes_to_wait(username: str, request: HttpRequest | None) -> int:
    """Return the minutes until the name may be tried again from the request's address; 0 for now."""
    end = blocked_until(username, client_address(request))
    return 0 if end is None else max(1, math.ceil((end - timezone.now()).total_seconds() / 60))
