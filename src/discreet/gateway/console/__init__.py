"""The console: pages where owners decide and analysts look, made by the desk from what the vault says."""
