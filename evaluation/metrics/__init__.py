"""Rule metrics, one file each, and shared text normalization. No Django.

A metric takes question, answer and settings and returns a ``Result``; failures never become numbers."""
