"""The promise as data: units, guarantees, composition, accuracy, and exact checks of finite mechanisms."""
