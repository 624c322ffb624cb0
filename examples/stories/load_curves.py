# %% [markdown]
# # A load-curve study
#
# Smart meters record when people get up, cook and leave. A grid operator does not need that. It needs the mean load at
# each hour, to plan for the evening, and the main ways in which households differ.
#
# **Who is protected:** a household, with its whole curve. The curves here are synthetic, from a generator that everyone
# can read, so the truth can be plotted next to what is released.

# %%
import matplotlib.pyplot as plt
import numpy as np

import discreet as dp
from discreet.functions import CurvePCA, MeanCurve, sanitized_curves

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 120})
HOUSEHOLDS = 4000
hours = np.arange(0, 24, 0.5)
draw = np.random.default_rng(2024)


def hump(center: np.ndarray, width: float) -> np.ndarray:
    """A bell curve around an hour for each household; the day is a circle."""
    away = (hours - center[:, None] + 12) % 24 - 12
    return np.exp(-((away / width) ** 2) / 2)


awake = draw.normal(7.2, 0.8, HOUSEHOLDS)
supper = draw.normal(19, 1.1, HOUSEHOLDS)
size = draw.lognormal(-0.1, 0.35, HOUSEHOLDS)[:, None]
curves = size * (0.25 + 0.5 * hump(awake, 1.2) + 0.9 * hump(supper, 2.0))
curves += draw.normal(0, 0.06, curves.shape)
print(f"{HOUSEHOLDS:,} curves of {len(hours)} half-hours, in kilowatt")

# %% [markdown]
# ## The mean curve, with a band
#
# One thing is declared: a curve counts up to a root mean square of 1 kW over the day. A larger curve is scaled down, so
# that no household changes the sum by more. That number comes from general knowledge of households, never from these
# curves. The number of households is public.

# %%
ledger = dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=dp.Approx(epsilon=3, delta=1e-5))
declared = {"points": hours, "curve_norm": 1, "n_samples": HOUSEHOLDS, "delta": 1e-6, "ledger": ledger}
mean = MeanCurve(basis=16, epsilon=0.5, **declared).fit(curves)
print(f"at 19:00 the mean load is {mean(19.0):.3f} kW")
print(f"the whole curve is {mean.error(0.95)}")
print("it cost", mean.release_.guarantee)

# %% [markdown]
# The band holds at every hour at once, and also between the half-hours. You can look for peaks as often as you like:
# the curve is released, and evaluating it is free.

# %%
fine = np.linspace(0, 23.5, 300)
low, high = mean.band(0.95, at=fine)
figure, panel = plt.subplots(figsize=(7, 3.6), layout="constrained")
panel.fill_between(fine, low, high, color="#9ec3e6", label="band (95%, all hours at once)")
panel.plot(fine, mean(fine), color="#1f4e79", label="released mean")
panel.plot(hours, curves.mean(axis=0), ".", color="black", markersize=3, label="true mean, which nobody is shown")
panel.set(xlim=(0, 23.5), xticks=range(0, 24, 3), xlabel="hour", ylabel="kW", title="The mean load, for ε = 0.5")
panel.legend(frameon=False, loc="upper left")
figure.savefig("load_curves_mean.png")
released, true = fine[np.argmax(mean(fine))], hours[np.argmax(curves.mean(axis=0))]
print(
    f"the peak is at {int(released)}:{int(released % 1 * 60):02d}; the true one at {int(true)}:{int(true % 1 * 60):02d}"
)

# %% [markdown]
# ## How households differ
#
# Principal components are curves too: the ways in which a day differs from the mean, the most important first. They
# come from a noisy covariance operator, which costs more than a mean.

# %%
ways = CurvePCA(2, basis=12, epsilon=2, **declared).fit(curves)
print(f"it cost {ways.release_.guarantee}, and {ledger.remaining} remains")
for place, variance in enumerate(ways.explained_variance_):
    print(f"way {place + 1}: a standard deviation of {np.sqrt(variance):.3f} kW")

figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
for place, panel in enumerate(panels):
    away = 1.5 * np.sqrt(ways.explained_variance_[place]) * ways.components_[place]
    panel.plot(hours, ways.mean_, color="0.5", label="mean")
    panel.plot(hours, ways.mean_ + away, color="#c0504d", label="1.5 standard deviations up")
    panel.plot(hours, ways.mean_ - away, color="#1f4e79", label="1.5 standard deviations down")
    panel.set(xlim=(0, 23.5), xticks=range(0, 24, 3), xlabel="hour", title=f"Way {place + 1}")
panels[0].set_ylabel("kW")
panels[0].legend(frameon=False, loc="upper left")
figure.savefig("load_curves_ways.png")

# %% [markdown]
# The first is how much a household uses, the second whether it has supper early or late. How good is that? What
# fraction of the variance between the true curves do the two released ones explain, and how much could any two explain?

# %%
centered = curves - curves.mean(axis=0)
basis, _ = np.linalg.qr(ways.components_.T)
ours = ((centered @ basis) ** 2).sum() / (centered**2).sum()
variances = np.linalg.svd(centered, compute_uv=False) ** 2
print(f"the released ones explain {ours:.1%}, the best two {variances[:2].sum() / variances.sum():.1%}")

# %% [markdown]
# ## What if nobody is trusted with the curves?
#
# Then each meter randomizes its own curve before it leaves the house, and the mean is taken over noisy copies.

# %%
copies = sanitized_curves(curves, points=hours, curve_norm=1, basis=16, epsilon=0.5)


def off_by(released: np.ndarray) -> str:
    """How far a curve is from the true mean, as a root mean square over the day."""
    return f"{np.sqrt(np.mean((released - curves.mean(axis=0)) ** 2)):.3f} kW"


print("the mean with a trusted collector is off by        ", off_by(mean.mean_))
print("the mean of curves randomized at home is off by    ", off_by(copies.curves_.mean(axis=0)))
print("files written: load_curves_mean.png, load_curves_ways.png")

# %% [markdown]
# At the same ε that is far worse. It is not a weakness of the method, but the price of trusting nobody.
#
# **What to notice.** The answer is a function, and so is its error. Its cost was known before the first curve was read,
# and is paid once: hours, peaks and sums of a released curve are free. Two releases, for ε = 0.5 and ε = 2, left more
# than 0.5 of 3, because Gaussian noise adds up more slowly than its ε.
