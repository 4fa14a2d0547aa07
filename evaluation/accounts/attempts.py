"""Failed attempts to log in, and when somebody has to wait: kept in the database, so that every web process counts.

Names and addresses are kept as keyed hashes only, for a day. Ten failures of one name from one address within fifteen
minutes, or fifty of one name from anywhere, and the name has to wait until the oldest of them is that old. A right
password does not help meanwhile; it is not even looked at.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.crypto import salted_hmac

from evaluation.models import FailedLogin

WINDOW = timedelta(minutes=15)
KEPT = timedelta(days=1)
FROM_ONE_ADDRESS = 10
FROM_ANYWHERE = 50
_SALT = "evaluation.accounts.attempts"


def wait_until(name: str, address: str, now: datetime | None = None) -> datetime | None:
    """When the name may be tried again from the address; ``None`` for now. One query."""
    moment = now or timezone.now()
    rows = FailedLogin.objects.filter(name=_hashed(name), created_at__gt=moment - WINDOW).order_by("-created_at")
    failures = list(rows.values_list("created_at", "address")[:FROM_ANYWHERE])
    here = [at for at, whence in failures if whence == _hashed(address)]
    counted = ((here, FROM_ONE_ADDRESS), ([at for at, _ in failures], FROM_ANYWHERE))
    return max((at[limit - 1] + WINDOW for at, limit in counted if len(at) >= limit), default=None)


def failed(name: str, address: str) -> None:
    """Remember a failed attempt, and forget those of yesterday."""
    FailedLogin.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    FailedLogin.objects.create(name=_hashed(name), address=_hashed(address))


def succeeded(name: str, address: str) -> None:
    """Forget the failures of a name from the address it logged in from."""
    FailedLogin.objects.filter(name=_hashed(name), address=_hashed(address)).delete()


def _hashed(text: str) -> str:
    return salted_hmac(_SALT, text.strip().casefold(), algorithm="sha256").hexdigest()
