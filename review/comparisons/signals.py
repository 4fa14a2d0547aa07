"""Signals of comparisons."""

from django.dispatch import Signal

#: Sent with ``run`` and ``gate`` after a gate was computed, unless it was computed with sealed labels.
gate_computed = Signal()
