"""Reports of single devices, and what is estimated from all of them."""
