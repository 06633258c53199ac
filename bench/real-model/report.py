"""From runs to the tables that are printed."""

import collections
import math
import statistics

KINDS = ["create", "change", "several", "find", "explain", "run"]


def interval(solved, of):
    """Wilson's 95 % interval of a share."""
    if of == 0:
        return 0.0, 0.0
    z, share = 1.96, solved / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(runs):
    solved = sum(run["solved"] for run in runs)
    low, high = interval(solved, len(runs))
    return f"{solved}/{len(runs)} ({low:.0%}–{high:.0%})" if runs else "–"


def by_agent(runs):
    found = collections.defaultdict(list)
    for run in runs:
        found[run["agent"]].append(run)
    return found


def print_all(runs):
    agents = by_agent(runs)
    print("## Solved, with 95 % intervals\n")
    print("| agent | all | " + " | ".join(KINDS) + " |\n|" + " --- |" * (len(KINDS) + 2))
    for agent, own in agents.items():
        cells = [share(own)] + [share([run for run in own if run["kind"] == kind]) for kind in KINDS]
        print(f"| {agent} | " + " | ".join(cells) + " |")
    print("\n## What a run takes (medians), and how it goes wrong\n")
    print("| agent | requests | tokens in | tokens out | seconds | same call after an error | claims success, changed nothing, not marked |")
    print("|" + " --- |" * 7)
    for agent, own in agents.items():
        middle = [statistics.median(run[what] for run in own) for what in ("requests", "tokens_in", "tokens_out", "seconds")]
        after, same = sum(run["after_error"] for run in own), sum(run["same_again"] for run in own)
        again = f"{same}/{after} ({same / after:.0%})" if after else "–"
        empty = sum(run["claims"] and run["must_change"] and not run["changed"] and not run["marked"] for run in own)
        print(f"| {agent} | {middle[0]:.0f} | {middle[1]:,.0f} | {middle[2]:,.0f} | {middle[3]:.1f} | {again} | {empty} |")
    print("\n## How runs ended, and malformed calls\n")
    for agent, own in agents.items():
        endings = collections.Counter(str(run["ending"]) for run in own)
        wrong = collections.Counter(kind for run in own for kind in run["malformed"])
        print(f"- {agent}: " + ", ".join(f"{name} {count}" for name, count in endings.most_common()))
        print("  - malformed: " + (", ".join(f"{name} {count}" for name, count in wrong.most_common()) or "none"))
