"""Commands of this app, and options and outputs that several of them share."""
