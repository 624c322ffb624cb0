"""The founding documents' tables and small experiments, run again: taught and tight side by side."""
