"""Files of text without types: how they are read, and copies in UTF-8."""
