"""What is said to a user whose input cannot be used."""


class InputError(ValueError):
    """One line that names the cause and the remedy; commands print it and end with code 2."""
