"""Codes of files, folders and ports."""

from __future__ import annotations

from discreet.error_codes.row import Explained

FILES = {
    "file-exists": Explained("the name of a file that exists", "A new file never replaces another.", "another name"),
    "file-not-found": Explained("the path of a file that does not exist", "It holds what is needed.", "its path"),
    "file-not-readable": Explained(
        "a file that cannot be read, or files with different columns",
        "Its content is needed, and the system refused to read it.",
        "a file that you may read",
    ),
    "file-not-writable": Explained(
        "a place that cannot be written to",
        "The file must be kept, and the system refused to write it.",
        "a place that you may write to",
    ),
    "no-such-folder": Explained(
        "a file in a folder that does not exist", "Folders are not created for you.", "a folder that exists"
    ),
    "port-unavailable": Explained(
        "`--port 80`, or a port that is in use", "The service cannot listen there.", "a free port: `--port 8731`"
    ),
}
