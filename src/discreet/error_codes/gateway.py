"""Codes of the gateway."""

from __future__ import annotations

from discreet.error_codes.row import Explained

GATEWAY = {
    "gateway-login": Explained(
        "a token or a login link that is unknown, mistyped, expired, revoked or used",
        "Nobody without a valid token learns which of these it is.",
        "a valid token, or a new link from the owner: `discreet account clinic.toml link alice`",
    ),
    "gateway-suspended": Explained(
        "anything with a valid token of a suspended account",
        "The owner or a steward suspended the account.",
        "the same after the owner resumed it: `discreet account clinic.toml resume alice`",
    ),
    "gateway-stopped": Explained(
        "a question that would be charged, while all are stopped",
        "The owner stopped them, or more answers were late than `late_allowed`.",
        "the same after the owner has looked: `discreet account clinic.toml resume`",
    ),
    "gateway-role": Explained(
        "something that the caller's role or the scopes of the token do not allow",
        "A role has only what it needs. Tokens of notebooks and dashboards cannot make other tokens.",
        "a login by a link, or another account",
    ),
    "gateway-approval": Explained(
        "a question above `approve_above`, one over MCP above `confirm_above`, or a decision about one's own request",
        "A second person must agree.",
        "the same question after an owner or a steward approved the request that the message names",
    ),
    "gateway-question-limit": Explained(
        "a question with more ε than `most` of `[gateway.question]`",
        "The owner limits what one question may cost.",
        "a smaller ε",
    ),
    "gateway-token-limit": Explained(
        "a question with more ε than its token has left",
        "A token can have a limit below that of its account.",
        "another token, or a smaller ε",
    ),
    "gateway-session-limit": Explained(
        "a question with more ε than is left of `session`",
        "The owner limits what one token spends without a pause of 30 minutes.",
        "the same question in a new session, or a smaller ε",
    ),
    "gateway-day-limit": Explained(
        "a question with more ε than is left of `day`",
        "The owner limits what one account spends on one day, in UTC.",
        "the same question tomorrow, or a smaller ε",
    ),
    "gateway-mcp-limit": Explained(
        "a question over MCP with more ε than is left of `session` of `[gateway.mcp]`",
        "Programs ask in loops. The owner limits what one token spends over MCP without a pause of 30 minutes.",
        "a smaller ε; a question that was bought before, which is free; or the same question by a person",
    ),
    "gateway-confirm": Explained(
        "a question over MCP above `confirm_above` that no person has confirmed",
        "Above it, a program does not decide alone.",
        "the same question with a smaller ε, or in a client that shows it to a person",
    ),
    "gateway-declined": Explained(
        "a question over MCP that a person was shown and did not confirm",
        "The person decides. Nothing was charged.",
        "another question, or the same one with a smaller ε",
    ),
    "gateway-not-found": Explained(
        "an account, a token, a request or a receipt that is not there, or belongs to somebody else",
        "Other people's things look like things that do not exist.",
        "one of the list: `discreet account clinic.toml list`",
    ),
    "gateway-dashboard": Explained(
        "a dashboard without a title, with a rule that has no ε, or changed after somebody looked who publishes it",
        "A dashboard is a list of saved answers with a name. A rule needs a limit. Only what was seen is published.",
        "a title on one line, and an ε for the rule",
    ),
    "gateway-tile": Explained(
        "an answer that is too large for a dashboard, or one tile too many",
        "A dashboard is a page that people look at.",
        "fewer groups, or a second dashboard",
    ),
    "gateway-tile-price": Explained(
        "a new version of a tile that costs more than was agreed to",
        "Nobody pays more than the page said.",
        "the same with the new price",
    ),
    "gateway-rule-limit": Explained(
        "a tile that a rule would buy with more ε than is left to the rule",
        "A rule spends at most what its author set.",
        "the tile by hand, or another limit for the rule",
    ),
    "gateway-argument": Explained(
        "a verb of the gateway with a missing, unknown or malformed argument",
        "A misspelled argument must not become a missing one.",
        "the arguments that the message names",
    ),
    "gateway-scope": Explained(
        "a token with a scope that its role does not have",
        "A token never allows more than the role of its account.",
        '`"scopes": ["ask", "replay", "explain"]`',
    ),
    "gateway-token-ended": Explained(
        "a new secret for a token that is expired or revoked",
        "What was ended stays ended.",
        "a new token",
    ),
    "gateway-account-name": Explained(
        "an account with an empty name, spaces or other characters",
        "Names appear in addresses, records and commands.",
        "`alice`, or `a.lee@clinic.org`",
    ),
    "gateway-account-exists": Explained(
        "a second account with the same name, perhaps in other letters",
        "`Alice` and `alice` would be confused.",
        "another name, or a new link for the account: `discreet account clinic.toml link alice`",
    ),
    "gateway-account-limit": Explained(
        "an analyst without an ε, or another role with one",
        "Who asks questions has a limit in the ledger. Who does not has none.",
        "`discreet account clinic.toml open alice --epsilon 3`",
    ),
    "gateway-unknown-role": Explained(
        "an account with a role that does not exist",
        "Each role has fixed rights.",
        "owner, steward, auditor, analyst, viewer or service",
    ),
    "gateway-decided": Explained(
        "a second decision about a request or a proposal",
        "A decision is final.",
        "the same question again, which files a new request",
    ),
    "gateway-proposal": Explained(
        "a proposed policy that is empty, too long or no change",
        "A proposal is stored with its difference from the newest version.",
        "the whole text of the policy, changed",
    ),
    "gateway-store": Explained(
        "a gateway's database in memory, in a file with other tables, or in another place after SIGHUP",
        "Accounts and tokens must outlive the process, and belong to nothing else.",
        '`store = "clinic.gateway"`, or a postgresql:// URL with its own schema',
    ),
    "gateway-other-ledger": Explained(
        "a gateway whose accounts belong to another ledger than the one that the policy names, or to one that is gone",
        "A new ledger would forget what was spent.",
        'the path of the ledger; or, to go on with another one on purpose, `discreet ledger clinic.toml --adopt "why"`',
    ),
    "gateway-running": Explained(
        "a second gateway at a database or a ledger in a file",
        "One gateway hides what its questions have charged until they are answered. It does not know those of another.",
        "the same after the other gateway has ended; after a change of the policy, SIGHUP",
    ),
    "gateway-store-exposed": Explained(
        "a gateway's database that other users can read",
        "Who can write to it can make themselves the owner.",
        "`chmod 600 clinic.gateway`",
    ),
    "gateway-store-damaged": Explained(
        "a gateway's database that SQLite cannot read",
        "Accounts and suspensions that cannot be read cannot be trusted. What was spent is in the ledger.",
        "the newest backup",
    ),
    "gateway-newer-database": Explained(
        "a gateway's database that a newer version of discreet has changed",
        "An older program would misread it.",
        "the newer program, or the backup that was made before it",
    ),
    "gateway-backup": Explained(
        "`discreet account … backup` of a database in PostgreSQL",
        "PostgreSQL has its own tools.",
        "`pg_dump --schema=…`",
    ),
    "gateway-audit-changed": Explained(
        "an audit whose lines were changed or removed",
        "Each line has a hash of all lines before it.",
        "a comparison with the newest backup",
    ),
    "gateway-policy-changed": Explained(
        "a version of the policy that was changed in the gateway's database",
        "Each version has a hash of all versions before it.",
        "a comparison with the newest backup",
    ),
    "gateway-unavailable": Explained(
        "a request while the gateway starts or stops",
        "The process with the data does not respond. Nothing was handed out.",
        "the same request again, with the same Idempotency-Key",
    ),
    "gateway-duration": Explained(
        '`answer_after = "two seconds"`, or a time that is too long',
        "A time is a number with a unit.",
        '`"2s"`, `"500ms"`, `"1m"` or `"30d"`',
    ),
    "gateway-address": Explained(
        '`http = "8080"` in `[gateway]`',
        "A server listens on an address and a port.",
        '`http = "127.0.0.1:8080"`',
    ),
    "gateway-users": Explained(
        "`users` of `[gateway]` with one user, or the same twice",
        "What analysts reach must not be able to read the data.",
        '`users = ["discreet-vault", "discreet-desk"]`',
    ),
    "gateway-tls": Explained(
        "a gateway that other machines can reach without TLS, or with half a certificate",
        "Tokens would be readable on the way.",
        "`certificate` and `key` in `[gateway]`, or an address of this machine alone",
    ),
    "gateway-late": Explained(
        "a charged question that is not answered before its slot ends",
        "It was slow, failed, or had no memory: the reply is the same. What the question costs stays charged.",
        "a smaller question, or a longer `answer_after` that is chosen before asking, at a new cost",
    ),
    "gateway-not-bought": Explained(
        "a new question by a viewer, or with a token without the scope `ask`",
        "They see what was bought, and buy nothing.",
        "a question that was asked before, or an account that may ask",
    ),
    "gateway-question": Explained(
        "a request without `sql`, or with a very long one",
        "A question is a text.",
        '`{"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.1}`',
    ),
    "gateway-busy": Explained(
        "very many questions that wait for a lane",
        "Each takes its slot, one after the other.",
        "the same question later, with the same Idempotency-Key",
    ),
    "gateway-body": Explained(
        "a body that is no JSON object",
        "Arguments have names.",
        '`{"sql": "SELECT COUNT(*) FROM visits"}`',
    ),
    "gateway-failed": Explained(
        "a fault of the gateway itself",
        "Its message is not passed on, because it may quote values.",
        "the same question again with the same Idempotency-Key; tell us if it goes on",
    ),
    "gateway-version": Explained(
        '`version = "our data"` in `[gateway]`, a version that cannot be copied, or one whose copy is gone',
        "A version is a name that the owner publishes over a copy of the files. It never stands for other data.",
        '`version = "2026-11"`, and room for the copy next to the gateway\'s database',
    ),
    "gateway-not-isolated": Explained(
        "`discreet serve` as root while the desk's user can read the data, or `--check`",
        "Somebody who takes over the desk could read the data.",
        "the commands in the message, or `--not-isolated` to try things out",
    ),
    "gateway-plan-time": Explained(
        "a question that takes more than a quarter of its slot to be planned",
        "It is planned again in its slot. How long a plan takes depends on the text and on nobody.",
        "a simpler question, or a longer `answer_after`",
    ),
    "gateway-verify-size": Explained(
        "verifying a record of more than 100,000 entries in the console",
        "Others would wait for it.",
        "`discreet ledger clinic.ledger --verify` and `discreet account clinic.toml audit --verify`",
    ),
    "setup-source": Explained(
        "`discreet serve --new postgresql://host/clinic --new visits.parquet`",
        "One policy has one engine.",
        "one database, or one or more files",
    ),
    "setup-choice": Explained(
        "a step of a first run with a choice that is not in its list, or with two that exclude each other",
        "The policy is made from what is chosen.",
        "one of the choices that the page shows",
    ),
    "setup-people": Explained(
        "a first run in which no table has rows of people",
        "Somebody must be protected.",
        "the column that says whose a row is, for at least one table",
    ),
}
