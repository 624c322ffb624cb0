"""What is written in a record: values, guarantees and requests as text that can be compared."""
