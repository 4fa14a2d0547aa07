"""Commands of the machine's half, and beside them the options and outputs that several commands share."""
