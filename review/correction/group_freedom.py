"""The degrees of freedom of a variance over groups: fewer than groups less one where a few large groups carry it."""

from __future__ import annotations

import numpy as np

from review.agreement.statistic import Indices


def group_freedom(sizes: Indices) -> float:
    """Groups less one for groups of equal size, less where sizes differ: the freedom of a chi-squared with the same
    mean and variance as the sum of squares over groups (F. E. Satterthwaite, 1946, Biometrics 2), were the groups'
    means independent and alike in variance (R. M. Bell, D. F. McCaffrey, 2002, Survey Methodology 28; the working
    model of G. W. Imbens, M. Kolesar, 2016, Review of Economics and Statistics 98).

    With shares ``h`` of the answers and group means ``u`` the sum is ``u'Mu``, ``M = (I - h1') diag(h^2) (I - 1h')``;
    its freedom is ``tr(M)^2 / tr(M^2)``, in time linear in the groups. At least 1; two groups always have 1.
    """
    if len(sizes) < 3:
        return 1.0
    share = np.asarray(sizes, dtype=np.float64) / float(np.sum(sizes))
    square = share * share
    total = float(square.sum())
    crossed, of_squares = float(share @ square), float(square @ square)
    trace = total - 2.0 * crossed + total * total
    middle = np.array([[total, -1.0], [-1.0, 0.0]])
    inner = np.array([[total, crossed], [crossed, of_squares]])
    turned = middle @ inner
    squared = of_squares - 4.0 * float((square * square) @ share) + 2.0 * total * of_squares
    squared += float(np.trace(turned @ turned))
    found = trace * trace / squared if squared > 0 else 1.0
    return min(len(sizes) - 1.0, max(1.0, found))
