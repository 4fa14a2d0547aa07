"""Files that the packages of other tools write and read themselves (``make interchange``), in an environment apart."""
