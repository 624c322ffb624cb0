"""Answers from earlier answers: what released numbers imply, with known noise, and what is missing to be paid."""
