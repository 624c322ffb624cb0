"""Choosing one of many: the best, the first above a threshold, the keys that enough people hold."""
