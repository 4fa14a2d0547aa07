"""Extensions of the core: pages, the search for events once a minute, and the job that sends messages."""

from __future__ import annotations

from contrib.webhooks.delivery import deliver_messages
from contrib.webhooks.events import delete_old_deliveries, queue_new_events
from evaluation.extensions import Feature

FEATURE = Feature(
    name="webhooks",
    urls="contrib.webhooks.views",
    jobs=(deliver_messages,),
    periodic=(queue_new_events, delete_old_deliveries),
)
