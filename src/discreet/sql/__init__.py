"""Private SQL: from text to a plan in which every row belongs to one person, and from the plan to noisy answers."""
