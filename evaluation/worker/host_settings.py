"""Settings that must be equal on all hosts of a database: the secret key, and the origins that may be called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from evaluation.core.canonical import content_hash
from evaluation.models import HostSettings

# Other hosts are ignored, because containers get a new name at each start.
_SEEN_WITHIN = timedelta(minutes=10)
_DIGITS = 16


def record_host() -> None:
    """Store digests of this process's settings for its host."""
    origins = (sorted(settings.CONCORD_JUDGE_ORIGINS), sorted(settings.CONCORD_SYSTEM_ORIGINS))
    digests = {"key": salted_hmac(__name__, "").hexdigest()[:_DIGITS], "origins": content_hash(origins)[:_DIGITS]}
    HostSettings.objects.update_or_create(host=settings.CONCORD_HOST, defaults={**digests, "seen_at": Now()})


def differing_settings() -> Iterator[tuple[str, str]]:
    """Yield names of settings that differ between hosts, with the groups of hosts that share a value."""
    rows = list(HostSettings.objects.filter(seen_at__gte=Now() - _SEEN_WITHIN).order_by("host"))
    for field, name in (("key", "SECRET_KEY"), ("origins", "CONCORD_JUDGE_ORIGINS or CONCORD_SYSTEM_ORIGINS")):
        hosts: defaultdict[str, list[str]] = defaultdict(list)
        for row in rows:
            hosts[getattr(row, field)].append(row.host)
        if len(hosts) > 1:
            yield name, " / ".join(map(", ".join, hosts.values()))
