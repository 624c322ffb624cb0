"""Plots of functions: a curve with its band, or a map."""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.extras import blank_figure, save_figure
from discreet.releases import below_title

_INK, _BAND = "#1f4e79", "#9ec3e6"


def density_plot(density: Any, path: str | None, title: str | None) -> Any:
    """The curve of one column with the band that holds everywhere at once (95%), or a map of two."""
    axes = density.features.axes
    if len(axes) > 2:
        raise InvalidArgument("A picture shows at most two columns. Release fewer.", code="one-column-only")
    figure = blank_figure("density.plot", size=(7, 4) if len(axes) == 1 else (6, 5))
    panel = figure.subplots()
    if len(axes) == 1:
        places, heights = density.grid(1024)
        panel.plot(places, heights, color=_INK, linewidth=1.8, label="private density")
        band = density.error(0.95)
        if band.amount is not None:
            label = f"± {band.amount:.3g} everywhere (95%)"
            panel.fill_between(
                places, heights - band.amount, heights + band.amount, color=_BAND, alpha=0.5, label=label
            )
        panel.axhline(0, color="0.6", linewidth=0.8)
        panel.set_xlim(float(exactly(axes[0].low)), float(exactly(axes[0].high)))
        panel.set_ylabel("density")
        panel.legend(frameon=False)
        panel.spines[["top", "right"]].set_visible(False)
    else:
        (x, y), heights = density.grid(128)
        shown = panel.pcolormesh(x, y, heights.T, cmap="Blues", shading="nearest")
        figure.colorbar(shown, ax=panel, label="density")
    for label, name in zip((panel.set_xlabel, panel.set_ylabel), density.names, strict=False):
        label(name.replace("$", r"\$"))
    text = (title or str(density.guarantee)).replace("$", r"\$")  # matplotlib would set a formula between two
    panel.set_title(text + below_title(density), fontsize=10)
    return save_figure(figure, path)
