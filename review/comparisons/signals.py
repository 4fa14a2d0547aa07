"""Signals of comparisons."""

from django.dispatch import Signal

#: Sent with ``run`` and ``gate`` after a gate was computed.
gate_computed = Signal()
