"""Our figures beside those of reference libraries, in an environment of their own: ``make crosscheck``.

irrCAC and ppi-python pin old versions of numpy and pandas, which the product must not be held to; where they are not
installed these tests are skipped with that reason.
"""
