"""What the database refuses whoever asks: overlap, leases, blindness and scope, as :class:`evaluation.storage.guards.Guard`.

Single rows are kept in order by the constraints of :mod:`review.models`; here stands what needs a look at other rows.
"""

from review.guards.assignments import ASSIGNMENTS
from review.guards.queues import QUEUES
from review.guards.ratings import RATINGS

GUARDS = [*QUEUES, *ASSIGNMENTS, *RATINGS]
