"""Judge providers, one file each. ``catalogue`` lists them, ``protocol`` defines their interface."""
