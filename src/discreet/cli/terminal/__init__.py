"""What commands share: options, help, completion and output."""
