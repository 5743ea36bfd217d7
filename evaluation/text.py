"""Text from outside, such as names and paths, made fit for a terminal."""


def printable(text: str) -> str:
    """Return one line of text with a question mark for every character that is not printable."""
    return "".join(each if each.isprintable() else "?" for each in text)
