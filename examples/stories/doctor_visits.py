# %% [markdown]
# # A published regression
#
# The RAND health insurance experiment gave families insurance plans at random, with different shares of the bill to
# pay, and counted their visits to doctors. statsmodels ships 20,190 years of people, and its documentation prints a
# Poisson regression of them. Here that table is made again, so that no year of anybody is exposed.
#
# **Who is protected:** a row, which is one year of one person.

# %%
import hashlib
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

import discreet as dp

PUBLISHED = {"lncoins": -0.0525, "idp": -0.2471, "lpi": 0.0353, "fmde": -0.0346, "physlm": 0.2717, "disea": 0.0339}


def load() -> pd.DataFrame:
    """The data as statsmodels has them, if they are the same as ever."""
    found = find_spec("statsmodels")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / "datasets" / "randhie" / "randhie.csv"
    assert hashlib.sha256(path.read_bytes()).hexdigest().startswith("9f6c87d05aef087a82cc4465310c8cd3")
    return pd.read_csv(path)


visits = load()
print(f"{len(visits):,} rows")

# %% [markdown]
# ## What is public
#
# The ranges of the columns: coinsurance and two payments in logarithms, two conditions, and an index of diseases. More
# than 40 visits a year count as 40.

# %%
ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=20, delta=1e-5))
ranges = {"mdvis": (0, 40), "lncoins": (0, 5), "lpi": (0, 8), "fmde": (0, 9), "disea": (0, 60)}
ranges |= {"idp": (0, 1), "physlm": (0, 1)}
table = dp.table(visits.astype(float), ledger=ledger)

# %% [markdown]
# ## Before anything is spent
#
# How many rows would a comparison of two plans need, and how wide would an interval be?

# %%
print(dp.stats.sample_size("two-means", effect=0.1, power=0.8, epsilon=1, range_in_deviations=9))
print(table.explain.stats.mean("mdvis", between=(0, 40), epsilon=0.5))

# %% [markdown]
# ## Visits of everybody
#
# The interval is for the population that these people are a sample of: sampling, noise and clipping are all in it.

# %%
mean = table.stats.mean("mdvis", between=(0, 40), epsilon=0.5)
print(mean)
print(mean.test(3.0))

# %% [markdown]
# ## The table
#
# One release, from which all coefficients follow. The published table also has three answers about one's own health.
# Few people say "poor", and the noise would hide that term: then the whole table says that nothing is known, rather
# than something wrong. So they are left out.

# %%
terms = " + ".join(PUBLISHED)
fitted = table.stats.poisson(f"mdvis ~ {terms}", between=ranges, epsilon=8, delta=1e-6)
print(fitted.summary())

# %% [markdown]
# ## Next to the published one
#
# The published coefficients are of these rows, and the intervals are for the population that they are a sample of. An
# interval that does not contain the published number is marked.

# %%
ends = fitted.conf_int(0.95)
for name, published in PUBLISHED.items():
    low, high = ends[name]
    mark = "" if low < published < high else "   *"
    print(f"{name:8} published {published:+.4f}   private {low:+.4f} to {high:+.4f}{mark}")

# %% [markdown]
# ## Several tests, one level
#
# Six p-values from one release: Holm's correction keeps the chance of any false finding at 5%.

# %%
adjusted = dp.stats.holm({name: fitted.pvalues[name] for name in PUBLISHED})
print({name: round(p, 4) for name, p in adjusted.items()})
print(f"{ledger.remaining} remains")
