"""Who is asking: what every request looks up before anything else, by statements (``storage/statements.py`` says why).

The store is Django's, with sessions in the database.
"""

from __future__ import annotations

import hashlib
import secrets

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from evaluation.models import ApiToken, User
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


def new_token() -> tuple[str, str]:
    """A token of 256 random bits, and its SHA-256 as the table keeps it."""
    text = PREFIX + secrets.token_urlsafe(32)
    return text, hashlib.sha256(text.encode()).hexdigest()
