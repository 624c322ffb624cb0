"""A poll as one HTML page for people who answer on a phone, and the client's script that it carries."""
