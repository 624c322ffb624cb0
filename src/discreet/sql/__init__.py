"""Private SQL: from text to a plan whose every row belongs to one person, and from the plan to noisy answers."""
