"""The studio: a page on this machine, from a table to a forecast, on the files of the commands."""
