"""What a data owner opens: a policy, and the database that analysts query."""
