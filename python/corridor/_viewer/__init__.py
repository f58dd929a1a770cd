"""Viewers of data sets and of arrays in memory, in notebooks and without them."""
