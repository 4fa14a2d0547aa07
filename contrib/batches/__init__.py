"""Calls of judges handed to their providers in batches: cheaper, and answered within a day (docs/decisions/0008).

``client`` is the format and the HTTP of it; ``ledger`` says which batches are open and due and writes calls into them,
``batching`` leads one from its file to its last reply, ``feature`` extends the core.
"""
