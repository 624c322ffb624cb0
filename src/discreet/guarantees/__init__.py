"""The promise as data: units, guarantees, composition, accuracy, and the exact check of finite mechanisms."""
