"""What a ledger says about itself: its course, its receipts, and what was measured."""
