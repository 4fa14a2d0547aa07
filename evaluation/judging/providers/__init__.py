"""Providers of judges: one file each, listed in ``catalogue``; ``protocol`` says how they are described."""
