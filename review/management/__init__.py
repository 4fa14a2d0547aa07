"""Commands of the human half, the tables they print, and the demo's content."""
