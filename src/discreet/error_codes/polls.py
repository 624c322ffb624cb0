"""Codes of surveys, whose devices randomize their answers, and of the shuffle model."""

from __future__ import annotations

from discreet.error_codes.row import Explained

POLLS = {
    "unknown-answer": Explained(
        '`survey.encode("maybe")` where the choices are yes and no',
        "A device reports only answers that the survey declares. Nothing was sent.",
        "one of the answers in the message",
    ),
    "candidates": Explained(
        '`analyze(reports)` of `survey(domain="strings", …)`, or a candidate that the survey does not take',
        "Reports over a large domain do not list its values, so each value to count must be named.",
        '`analyze(reports, candidates=["cat", "dog"])`',
    ),
    "survey-domain": Explained(
        '`survey(choices=["yes", "no"], domain_size=2, epsilon=1)`',
        "A survey has one domain, declared in one way.",
        "exactly one of `choices=`, `domain_size=` and `domain=`",
    ),
    "survey-columns": Explained(
        "a table, shares or reports in which a column of the survey is missing",
        "Every column has its own noise and its own share of ε.",
        "the columns of the survey, no more and no less",
    ),
    "survey-memory": Explained(
        "`repeated(survey, memory=path)` with a damaged file",
        "A new answer to the same question would reveal more than was promised.",
        "the undamaged file; or a new file, if the old promise may be given up",
    ),
    "survey-promise-not-kept": Explained(
        "`local.from_task(bytes)` of a survey whose noise is too small for the ε that it states",
        "Whoever made it promises more than it keeps.",
        "do not take part; ask the survey maker for `local.task(survey)` of a survey made by this package",
    ),
    "survey-task-unreadable": Explained(
        "`local.from_task(bytes)` of bytes that `local.task` did not write",
        "A part that is not understood could be the noise.",
        "the bytes, exactly as they were written",
    ),
    "shuffle-batch-damaged": Explained(
        "a batch that was cut short, changed or sealed for another task",
        "Its digest differs from the sealed one, so its counts cannot be trusted.",
        "the batch, fetched again from the shuffler",
    ),
    "shuffle-certificate": Explained(
        "`discreet shuffle shuffler poll.toml --certificate a.pem --certificate-key b.pem` with files that cannot be "
        "read, or that do not belong together",
        "Without them there is no TLS, and the service does not start without what was asked for.",
        "a certificate and its own private key, both as PEM files that the user of the service can read",
    ),
    "shuffle-closed": Explained(
        "a report after the task was closed",
        "The batch was already shuffled and passed on; a late report would stand alone.",
        "a report to the next task",
    ),
    "shuffle-keys-deleted": Explained(
        "a service started again after its keys were deleted",
        "Keys are deleted so that old reports can never be opened, and this task was not finished before.",
        "a new task with new keys",
    ),
    "shuffle-keys-exposed": Explained(
        "a key file that other users of the machine can read",
        "Whoever reads it can open reports.",
        "`chmod 600` on the key file",
    ),
    "shuffle-ledger-unit": Explained(
        "a ledger that protects people, or rows by adding and removing",
        "The number of reports is public, so the guarantee is about one report replaced by another.",
        '`dp.Ledger.open(…, protects=dp.row(neighbors="replace"))`',
    ),
    "shuffle-no-form": Explained(
        "`discreet shuffle form` for a task with an issuer, for sums of numbers, or with a shuffler without https",
        "The page reports one of a few answers with the script that it carries, which cannot do more than that.",
        "what the message says: another task, another address, or a page of your own with a larger entry of the client",
    ),
    "shuffle-no-question": Explained(
        '`discreet shuffle form poll.toml form.html --question ""`',
        "People must know what they answer.",
        'the question as people read it: `--question "How often do you feel lonely?"`',
    ),
    "shuffle-not-accepted": Explained(
        "a token that was cut short, or a report or batch of another task",
        "A service accepts only what was made with its own task file and tokens.",
        "the same task file everywhere, and a complete token of that task",
    ),
    "shuffle-other-task": Explained(
        "the database of an earlier task",
        "Reports of two tasks must not be mixed: their protocols may differ.",
        "a new database for each task",
    ),
    "shuffle-promise-not-kept": Explained(
        "a task file whose ε and δ are smaller than its noise allows",
        "A client checks the promise by itself and does not take part in a task that breaks it.",
        "a task file with the ε and δ of its protocol",
    ),
    "shuffle-reported-already": Explained(
        "a second report with the same token",
        "Two reports of one person would reveal more.",
        "one report for each task",
    ),
    "shuffle-task-unreadable": Explained(
        "a task file that is damaged, incomplete or from another version",
        "A client takes part only in a task that it can check.",
        "the complete file from whoever runs the task",
    ),
    "shuffle-tls": Explained(
        "`discreet shuffle shuffler poll.toml --host 0.0.0.0`, or a certificate without its key",
        "Other machines could reach it without TLS, and whoever reads a token on the way can use it up.",
        "`--certificate` and `--certificate-key`; or `--behind-proxy`, if a reverse proxy in front of it has TLS",
    ),
    "shuffle-too-few-clients": Explained(
        "`minimum=1`, or a small `honest=`",
        "The noise of the honest clients together hides each of them, which takes at least this many.",
        "a larger `minimum=` or `honest=`",
    ),
    "shuffle-too-many-reports": Explained(
        "many more reports than `clients=`",
        "The sum has room for the planned number of clients, and may have wrapped around.",
        "a protocol with the real number of clients",
    ),
    "shuffle-wrong-task": Explained(
        "`discreet shuffle check https://shuffler.example/v1/task --hash …` where the service has another task",
        "The hash names the noise, the smallest batch and both keys. Another one is another promise.",
        "the hash that the publisher of the poll gave; if it is right, do not take part",
    ),
    "shuffle-wrong-keys": Explained(
        "the key file of another task or service",
        "Reports are sealed to the keys in the task file; others cannot open them.",
        "the key file that was made with this task",
    ),
    "shuffle-form-texts": Explained(
        "`discreet shuffle form … --texts german.toml`, with a name that is not known, or without words for one",
        "The page says a few fixed things around its question, and each must be said.",
        "the file that the command writes when it does not exist yet, with other words in the quotes",
    ),
    "shuffle-has-issuer": Explained(
        "`discreet shuffle tokens` for a task with `[admission]`",
        "Its shuffler accepts tickets of the issuer and nothing else.",
        "`discreet shuffle vouchers`, and a ticket for each voucher",
    ),
    "shuffle-issuer-answer": Explained(
        "an issuer that signs with another key than that of the task",
        "A key for each person would tell whose ticket it is, so a ticket is checked before it is used.",
        "no report; a question to whoever runs the poll",
    ),
    "shuffle-issuer-fault": Explained(
        "a signature that the issuer's own check finds to be wrong",
        "Part of a wrong signature can tell the private key, so it is not handed out.",
        "the same request again; another machine if it happens again",
    ),
    "shuffle-issuer-key": Explained(
        "an issuer's key of fewer than 2048 bits, or one that is not an RSA modulus",
        "Who can compute its private key can make tickets.",
        "a key of 2048 to 4096 bits",
    ),
    "shuffle-no-issuer": Explained(
        "a voucher, or `discreet shuffle issuer`, for a task without `[admission]`",
        "Its shuffler accepts its own tokens.",
        "a token; or a task made with `discreet shuffle init --admission`",
    ),
    "shuffle-voucher-used": Explained(
        "a voucher that was used on another device",
        "A voucher is good for one ticket, so that one person has one report.",
        "the device where it was used first, or another voucher",
    ),
    "shuffle-vouchers": Explained(
        "a list of names instead of vouchers, or a line that comes twice",
        "A voucher that can be guessed lets others report in its place.",
        "the lines that `discreet shuffle vouchers` prints",
    ),
}
