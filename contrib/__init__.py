"""Optional features, each a Django app that the site works without (README.md)."""
