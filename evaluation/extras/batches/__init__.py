"""Calls of judges handed to their providers in batches: cheaper, and answered within a day (docs/decisions/0008).

``wire`` is the format and ``client`` the HTTP of it; ``ledger`` says which batches are open and due, ``session`` writes
calls into them, ``batching`` leads one from its file to its last reply, ``out`` tells what is out.
"""
