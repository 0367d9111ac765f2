"""The studio: a page on this machine, from a table to a forecast, over the same files as commands."""
