"""Commands of this app, and options and output that several of them share."""
