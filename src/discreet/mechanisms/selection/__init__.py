"""Selection: the best candidate, the first answer above a threshold, the keys that enough people have."""
