"""Publications: tables, cubes and synthetic rows for the public, with a card and a proof that the ledger confirms."""

from discreet.publication.publishing import Published, explain_publication, publish
from discreet.publication.verifying import Checked, verify_publication

__all__ = ["Checked", "Published", "explain_publication", "publish", "verify_publication"]
