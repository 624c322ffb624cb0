"""What one device sends, and what is estimated from all reports."""
