"""`discreet serve` and `discreet account`: the gateway, and the owner's day at it."""
