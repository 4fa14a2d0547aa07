"""Attacks and canaries for judges: answers that try to win a good score, and the scores that a sound judge gives them.

``running`` reads the shipped sets (``en.yaml``, ``ko.yaml``) and puts a judge to them, ``checking`` stores the results
and makes the card of the judge's page.
"""
