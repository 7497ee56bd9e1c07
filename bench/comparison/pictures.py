"""Pictures of the comparison, as SVG that fits light and dark pages."""

import html
import math

STYLE = """<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}.soft{fill:#6e7781;font-size:12px}
.ours{fill:#0a7ea4}.rival{fill:#9aa4ae}.floor{fill:none;stroke:#9aa4ae;stroke-dasharray:3 2}.grid{stroke:#d0d7de;stroke-width:1}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#8b949e}.rival{fill:#6e7681}.grid{stroke:#30363d}.ours{fill:#39b5e0}}
</style>"""
LINES = ["#0a7ea4", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#2e4057", "#a26769", "#7f9c96", "#c08497", "#5c6b73"]


def amount(value, unit):
    """A number as people write it, with its unit."""
    if unit == "us":
        if value >= 1e6:
            return f"{value / 1e6:.3g} s"
        if value >= 1e3:
            return f"{value / 1e3:.3g} ms"
        return f"{value:.3g} us" if value >= 1 else f"{value * 1e3:.3g} ns"
    if unit == "s":
        return f"{value:.2f} s" if value >= 0.1 else f"{value * 1e3:.0f} ms"
    if unit == "%":
        return f"{value:,.3g} %" if value < 100 else f"{value:,.0f} %"
    if unit == "/s":
        return f"{value / 1e6:.3g} M/s" if value >= 1e6 else f"{value / 1e3:.3g}k/s" if value >= 1e4 else f"{value:,.0f} /s"
    return f"{value:,.0f}"


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>'


def picture(width, height, parts, label):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" role="img" aria-label="{html.escape(label)}">{STYLE}{"".join(parts)}</svg>\n')


def bars(rows, label):
    """A panel for each row; who is better is above. [{title, unit, better, bars: [(name, kind, value)]}]"""
    width, left, right, line = 860, 210, 110, 22
    parts, y = [], 10
    for row in rows:
        values = [value for _, _, value in row["bars"] if value > 0]
        if not values:
            continue
        log = max(values) / min(values) > 30
        direction = "longer is better" if row["better"] == "higher" else "shorter is better"
        y += 24
        parts.append(text(10, y, row["title"], "title"))
        parts.append(text(width - 10, y, direction + (", logarithmic" if log else ""), "soft", "end"))
        floor = min(values) / 3
        for name, kind, value in sorted(row["bars"], key=lambda bar: bar[2], reverse=row["better"] == "higher"):
            y += line
            part = (math.log(value / floor) / math.log(max(values) / floor) if log else value / max(values)) if value > 0 else 0
            length = max(1.0, part * (width - left - right))
            parts.append(text(left - 8, y, name, "", "end"))
            parts.append(f'<rect x="{left}" y="{y - 12}" width="{length:.1f}" height="15" rx="2" class="{kind}"/>')
            parts.append(text(left + length + 6, y, amount(value, row["unit"]), "soft"))
        y += 16
    return picture(width, y + 8, parts, label)


def lines(title, unit, series, label, across):
    """Growth, both axes logarithmic. {name: [(size, value)]}; Interlock comes first."""
    width, height, left, bottom, top, right = 860, 360, 70, 50, 40, 230
    points = [point for values in series.values() for point in values]
    if not points:
        return None
    sizes = [max(1, size) for size, _ in points]
    values = [value for _, value in points if value > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    widest = max(math.log10(max(sizes)), 1)

    def at(size, value):
        return (left + math.log10(max(1, size)) / widest * (width - left - right),
                height - bottom - (math.log10(value) - low) / (high - low) * (height - bottom - top))

    parts = [text(10, 20, title, "title")]
    for power in range(low, high + 1):
        _, y = at(1, 10.0**power)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" class="grid"/>')
        parts.append(text(left - 6, y + 4, amount(10.0**power, unit), "soft", "end"))
    for size in sorted(set(sizes)):
        x, _ = at(size, values[0])
        parts.append(text(x, height - bottom + 18, f"{size:,}", "soft", "middle"))
    parts.append(text((left + width - right) / 2, height - 10, across, "soft", "middle"))
    labels = []
    for number, (name, values) in enumerate(series.items()):
        colour = LINES[number % len(LINES)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(size, value) for size, value in values if value > 0))
        stroke = 3 if number == 0 else 1.6
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{stroke}"/>')
        parts += [f'<circle cx="{point.split(",")[0]}" cy="{point.split(",")[1]}" r="3" fill="{colour}"/>' for point in path.split()]
        labels.append((float(path.split()[-1].split(",")[1]), float(path.split()[-1].split(",")[0]), name, colour))
    # Names at the ends of their lines, apart from each other.
    last = -math.inf
    for y, x, name, colour in sorted(labels):
        last = max(y, last + 16)
        parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{width - right + 12}" y2="{last:.1f}" stroke="{colour}" stroke-width="0.7"/>')
        parts.append(text(width - right + 16, last + 4, name))
    return picture(width, max(height, last + 20), parts, label)


def overview(rows, label):
    """One line for each comparison: how Interlock stands to the best of the other libraries."""
    width, left, right, line = 940, 400, 40, 22
    reach = max(1.0, *(abs(math.log10(row["times"])) for row in rows))
    middle = left + (width - left - right) / 2

    def at(times):
        return middle + math.log10(times) / reach * (width - left - right) / 2

    parts = [text(10, 20, "Interlock beside the best of the other libraries", "title"), text(middle - 8, 42, "← behind", "soft", "end"),
             text(middle + 8, 42, "ahead →", "soft")]
    y = 52
    for power in range(-math.ceil(reach), math.ceil(reach) + 1):
        if abs(power) <= reach:
            x = at(10.0**power)
            parts.append(f'<line x1="{x:.1f}" y1="48" x2="{x:.1f}" y2="{52 + line * len(rows)}" class="grid"/>')
            parts.append(text(x, 70 + line * len(rows), f"{10.0**power:g}×", "soft", "middle"))
    for row in rows:
        y += line
        x = at(row["times"])
        kind = "ours" if row["times"] >= 0.95 else "rival"
        parts.append(text(left - 8, y - 6, row["name"], "", "end"))
        parts.append(f'<rect x="{min(x, middle):.1f}" y="{y - 17}" width="{max(1.5, abs(x - middle)):.1f}" height="13" rx="2" class="{kind}"/>')
        beside = f"{row['times']:.2g}× {row['rival']}" if row["times"] < 100 else f"{row['times']:.0f}× {row['rival']}"
        # On the side where there is room.
        if row["times"] < 1:
            parts.append(text(middle + 6, y - 6, beside, "soft"))
        elif x < width - 200:
            parts.append(text(x + 6, y - 6, beside, "soft"))
        else:
            parts.append(text(middle - 6, y - 6, beside, "soft", "end"))
    return picture(width, y + 40, parts, label)
