"""One entrance for data: kinds come from declarations and dtypes, and every record is read by itself."""
