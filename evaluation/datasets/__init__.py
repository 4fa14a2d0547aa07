"""Question sets: upload with preview, versions by content hash, comparison of versions."""
