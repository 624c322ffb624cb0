"""The public text of a policy, as its page shows it."""

from __future__ import annotations

import json

from discreet.gateway.console.pages.policy import readable


def test_short_lists_are_on_one_line_and_the_text_means_the_same() -> None:
    columns = {"day": [None, None, "date", None], "city": [["a [b", 'c"]', "d\n e"], None, "other", None]}
    said = {"columns": columns, "names": ["n" * 300, "m"], "empty": []}
    text = readable(json.dumps(said))
    assert '"day": [null, null, "date", null]' in text
    assert json.loads(text) == said
    assert readable("not JSON") == "not JSON"
