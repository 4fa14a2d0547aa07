"""Django's sessions in the database, looked up by a statement of ours."""

from __future__ import annotations

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from evaluation.accounts.statements import SESSION


class SessionStore(db.SessionStore):
    """As Django's own; ended sessions are gone at once, because nothing is kept between requests."""

    def _get_session_from_db(self) -> Session | None:
        row = SESSION.first(key=self.session_key, now=timezone.now())
        if row is None:
            self._session_key = None
            return None
        session: Session = row[0]
        return session
