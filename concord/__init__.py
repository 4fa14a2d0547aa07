"""Concord from Python: a client of a site, and the evaluation of a function without a site."""

from concord.client import Client, ConcordError, Refused
from concord.evaluation import Evaluation, evaluate

__all__ = ["Client", "ConcordError", "Evaluation", "Refused", "evaluate"]
