"""Commands of this app, the tables they print, and the content of the demo."""
