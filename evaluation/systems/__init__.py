"""Adapters: how a system under test is asked. Pure Python above ``core``.

Door: ``protocol`` (what an adapter does, and ``ADAPTER``: answers that came as a file).
"""
