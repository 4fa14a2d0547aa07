"""Systems under test as rows: their versions made of typed settings, opened with what the operator allows, tried with
one question, and asked the questions of a run.

May import the ledger (``work``), tables and ``systems``. Door: ``systems`` (versions and their clients), ``trying``
(one question), ``session`` (the questions of a run).
"""
