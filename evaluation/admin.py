"""Imports the admin of each package of this app."""

from evaluation.accounts import admin as accounts
from evaluation.criteria import admin as criteria
from evaluation.datasets import admin as datasets
from evaluation.judges import admin as judges
from evaluation.profiles import admin as profiles
from evaluation.runs import admin as runs
from evaluation.systems import admin as systems

__all__ = ["accounts", "criteria", "datasets", "judges", "profiles", "runs", "systems"]
