"""Answers to questions that depend on earlier answers."""
