"""From runs to the tables that are printed."""

import collections
import json
import math
import statistics

KINDS = ["create", "change", "several", "find", "explain", "run"]
SUITES = ["harness", "polyglot"]


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


def runs_of(path):
    """The runs that `--out` left in a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def print_page(runs, baseline, about):
    """One page in Markdown, to share."""
    print("# Small tasks with a real model\n")
    for what, value in about.items():
        if value:
            print(f"- {what}: {value}")
    print()
    print_tables(runs)
    print_agents_in_pairs(runs)
    if baseline:
        print_pairs(runs, baseline)


def print_agents_in_pairs(runs):
    """Each agent beside the first one, on the tasks and seeds that both have."""
    agents = by_agent(runs)
    if len(agents) < 2:
        return
    (first, own), *others = agents.items()
    print(f"\n## {first} compared with the others: same task and seed\n")
    print(f"| other | pairs | solved by it | solved by {first} | only {first} | only the other | difference (95 %) | p |\n|" + " --- |" * 8)
    done = {(run["task"], run["repetition"]): run for run in own}
    for other, runs_of_it in others:
        pairs = [(run, done[key]) for run in runs_of_it if (key := (run["task"], run["repetition"])) in done]
        if pairs:
            gained, lost, middle, low, high = difference(pairs)
            solved = [sum(pair[side]["solved"] for pair in pairs) for side in (0, 1)]
            print(f"| {other} | {len(pairs)} | {solved[0]} | {solved[1]} | {gained} | {lost} | {middle:+.0%} ({low:+.0%} to {high:+.0%}) | {exact_p(gained, lost):.3f} |")


def paired(runs, baseline):
    """The runs that both sides made of the same agent and task with the same seed."""
    key = lambda run: (run["agent"], run["task"], run["repetition"])
    before = {key(run): run for run in baseline}
    return [(before[key(run)], run) for run in runs if key(run) in before]


def exact_p(gained, lost):
    """McNemar's exact test: how likely so uneven a split is if neither side is better."""
    changed = gained + lost
    tail = sum(math.comb(changed, count) for count in range(min(gained, lost) + 1)) / 2**changed
    return min(1.0, 2 * tail)


def difference(pairs):
    """The paired difference of the solved shares, with its 95 % interval."""
    gained = sum(new["solved"] and not old["solved"] for old, new in pairs)
    lost = sum(old["solved"] and not new["solved"] for old, new in pairs)
    count = len(pairs)
    middle = (gained - lost) / count
    error = math.sqrt(max(gained + lost - (gained - lost) ** 2 / count, 0)) / count
    return gained, lost, middle, max(-1.0, middle - 1.96 * error), min(1.0, middle + 1.96 * error)


def print_pairs(runs, baseline):
    print("\n## Compared with the baseline: same agent, task and seed\n")
    print("| agent | tasks | pairs | before | now | gained | lost | difference (95 %) | p | tokens in per solved run, before and now |")
    print("|" + " --- |" * 10)
    pairs = paired(runs, baseline)
    for agent in dict.fromkeys(new["agent"] for _, new in pairs):
        for kind in ["all", *KINDS]:
            own = [(old, new) for old, new in pairs if new["agent"] == agent and kind in ("all", new["kind"])]
            if not own:
                continue
            gained, lost, middle, low, high = difference(own)
            before, now = sum(old["solved"] for old, _ in own), sum(new["solved"] for _, new in own)
            cost = " and ".join(per_solved([pair[side] for pair in own]) for side in (0, 1))
            print(f"| {agent} | {kind} | {len(own)} | {before} | {now} | {gained} | {lost} | {middle:+.0%} ({low:+.0%} to {high:+.0%}) | {exact_p(gained, lost):.3f} | {cost} |")


def per_solved(runs):
    solved = sum(run["solved"] for run in runs)
    return f"{sum(run['tokens_in'] for run in runs) / solved:,.0f}" if solved else "–"


def print_tables(runs):
    agents = by_agent(runs)
    kinds = [] if {run["kind"] for run in runs} & set(SUITES) else KINDS
    print("## Solved, with 95 % intervals\n")
    print("| " + " | ".join(["agent", "all", *kinds]) + " |\n|" + " --- |" * (len(kinds) + 2))
    for agent, own in agents.items():
        cells = [share(own)] + [share([run for run in own if run["kind"] == kind]) for kind in kinds]
        print(f"| {agent} | " + " | ".join(cells) + " |")
    print("\n## What a run takes (medians), and how it goes wrong\n")
    print("| agent | requests | tokens in | tokens in per solved run | tokens out | seconds | same call after an error | claims success, changed nothing, not marked |")
    print("|" + " --- |" * 8)
    for agent, own in agents.items():
        middle = [statistics.median(run[what] for run in own) for what in ("requests", "tokens_in", "tokens_out", "seconds")]
        after, same = sum(run["after_error"] for run in own), sum(run["same_again"] for run in own)
        again = f"{same}/{after} ({same / after:.0%})" if after else "–"
        empty = sum(run["claims"] and run["must_change"] and not run["changed"] and not run["marked"] for run in own)
        asked = sum(run["must_change"] for run in own)
        print(f"| {agent} | {middle[0]:.0f} | {middle[1]:,.0f} | {per_solved(own)} | {middle[2]:,.0f} | {middle[3]:.1f} | {again} | {empty} of {asked} |")
    if any(run["solved"] and not run.get("first_try", True) for run in runs):
        print("\n## Solved with the first try\n")
        for agent, own in agents.items():
            print(f"- {agent}: {share([run | {'solved': run['first_try']} for run in own])}")
    print("\n## How runs ended, and malformed calls\n")
    for agent, own in agents.items():
        endings = collections.Counter(str(run["ending"]) for run in own)
        wrong = collections.Counter(kind for run in own for kind in run["malformed"])
        print(f"- {agent}: " + ", ".join(f"{name} {count}" for name, count in endings.most_common()))
        print("  - malformed: " + (", ".join(f"{name} {count}" for name, count in wrong.most_common()) or "none"))
