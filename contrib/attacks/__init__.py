"""Attacks and canaries for judges: answers that try to win a good score, and what a sound judge makes of them.

``spec`` reads the shipped sets (``en.yaml``, ``ko.yaml``), ``running`` puts a judge to them, ``checking`` keeps how it
took them, ``card`` is what its page shows.
"""
