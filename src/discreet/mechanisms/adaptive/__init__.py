"""Answers to questions that are chosen after earlier answers."""
