#!/usr/bin/env python
"""Command line of a checkout; the installed command ``concord`` calls the same function."""

from evaluation.installed import main

if __name__ == "__main__":
    main()
