"""Attacks and canaries for judges: answers that try to win a good score, and the scores of a sound judge.

``attacker`` reads the shipped sets (``en.yaml``, ``ko.yaml``) and runs them against a judge; ``checks`` stores the
results and builds the card of the judge's page."""
