"""Statistics against reference libraries: ``make crosscheck``.

Runs the tests that compare with scikit-learn, krippendorff and scipy, and with published values. irrCAC and ppi-python
pin old versions and would need an environment of their own; they are not part of it yet.
"""

from __future__ import annotations

import sys

import pytest

LIBRARIES = "tests/review/agreement"

if __name__ == "__main__":
    sys.exit(pytest.main(["-q", LIBRARIES]))
