"""What it looks like: made-up people, real questions, private answers, and a ledger going down."""
