"""Agreement, correction, paired tests, precision and sampling in pure Python and numpy, without Django.

Each docstring gives the formula, its range and its source. An undefined figure carries a reason."""
