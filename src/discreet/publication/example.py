"""A plan to begin with: every key, with what it is for."""

EXAMPLE = """# A publication: tables, cubes and synthetic rows for the public, from one ledger.
#   discreet publish plan.toml --explain     what it costs and how large errors are; spends nothing
#   discreet publish plan.toml out/          publishes; run it again if it was interrupted, nothing is paid twice
#   discreet verify out/ clinic.ledger       anyone with the ledger checks it, without the data
title = "Visits to the clinic"
publisher = "The clinic"                     # shown on the card, as are edition and about
edition = "2024"                             # for new data, name a new edition
about = "Visits of the year 2024."
policy = "clinic.toml"                       # the data, who is protected, and the ledger
confidence = 0.95                            # how sure the errors on the card are
anyway = false                               # true: publish even if a criterion is not met; the card says so

[tables.by_city]                             # becomes by_city.csv and by_city.parquet
title = "Visits by city"
sql = "SELECT city, COUNT(*) AS visits FROM visits GROUP BY city"
epsilon = 0.5

[cubes.city_and_sex]                         # all cells, all their sums and the total, which add up
table = "visits"
by = ["city", "sex"]
positive = true                              # no number is below 0
epsilon = 0.5

[synthetic.visits_like]                      # rows that belong to nobody
table = "visits"
columns = ["city", "sex", "age", "visits"]   # each needs between or choices in the policy
epsilon = 4.0                                # for the rows and for judging them
delta = 1e-6
bins = 20                                    # numbers are counted in at most so many bins
at_least = 2                                 # every row is equal to another one: nobody seems to be singled out
never = [{age = [0, 9], visits = [6, 9]}]    # combinations that cannot be, as everybody knows
judging = 0.25                               # the share of the cost that pays for the criteria
# candidates = [{rounds = 6}, {rounds = 3}]  # settings to choose from privately, by the criteria:
# tries = 5                                  # so many tries on average, charged for all of them together

[[synthetic.visits_like.criteria]]           # the largest error of any count of one column: 5% of all rows
kind = "marginals"
ways = 1
at_most = 0.05

[[synthetic.visits_like.criteria]]           # the same for pairs
kind = "marginals"
ways = 2
at_most = 0.05

[[synthetic.visits_like.criteria]]           # relative errors, where a count is not small
kind = "counts"
at_least = 500
at_most = 0.5

[[synthetic.visits_like.criteria]]           # means in groups that are not small
kind = "means"
of = "visits"
by = "city"
at_least = 1000
at_most = 1.0

[[synthetic.visits_like.criteria]]           # coefficients of a regression
kind = "slopes"
of = "visits"
on = ["age"]
at_most = 0.1

[[synthetic.visits_like.criteria]]           # true and synthetic rows are matched: few have no partner
kind = "matched"
columns = ["city", "sex", "age"]
join = {age = 4}                             # four neighboring bins of age count as one
at_most = 0.2
"""
"""It fits the policy and the table of `docs/publish.md`."""
