#!/usr/bin/env python3
"""Runs the tasks of a haft queue on a Ray cluster: one Ray task for each task of the queue.

    ray start --head
    python3 haft_ray.py --cpus 1 --memory-gb 2 --until-empty

Ray chooses the node, limits how many tasks run at once by their resources, and starts a task again on another node when its
node is lost. haft's queue decides everything else: a task belongs to one worker at a time, an interrupted turn is continued, and
limits of money hold over all nodes. Every node needs haft and its configuration with `store.url`.
"""

import argparse
import json
import subprocess
import sys
import time

import ray


class NotEnded(Exception):
    """The task was handed over, or its host cannot run tasks: Ray tries again, on any node."""


def haft(words, *arguments):
    done = subprocess.run([*words, *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"haft ended with {done.returncode}")
    return json.loads(done.stdout)


def run_task(words, worker_options, number):
    """Runs one task on this node and returns its status, such as `completed` or `failed`."""
    ran = subprocess.run([*words, "worker", "--task", str(number), *worker_options], capture_output=True, text=True, check=False)
    task = haft(words, "queue", "show", str(number))
    if task["state"] in ("queued", "running"):
        raise NotEnded(f"task {number} is {task['state']}: {ran.stderr.strip()[-500:]}")
    return task["status"]


def list_tasks(words, label, state):
    selection = ["--label", label] if label else []
    return haft(words, "queue", "list", "--state", state, "--limit", "10000", *selection)


def has_tasks_to_come(words, label):
    """Whether a task runs anywhere, or waits for another attempt. Scheduled tasks that never ran do not count."""
    queued = list_tasks(words, label, "queued")
    now = time.time() * 1000
    return any(task["epoch"] > 0 and task["not_before"] > now for task in queued) or bool(list_tasks(words, label, "running"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="the Ray cluster; a local one when absent")
    parser.add_argument("--haft", nargs="+", default=["haft"], help="the command that starts haft on a node")
    parser.add_argument("--worker-option", action="append", default=[], help="an option of `haft worker`, such as --lease=10; may be repeated")
    parser.add_argument("--label", help="only tasks with this label")
    parser.add_argument("--cpus", type=float, default=1, help="CPUs of a task")
    parser.add_argument("--memory-gb", type=float, default=0, help="memory of a task; not limited when absent")
    parser.add_argument("--gpus", type=float, default=0)
    parser.add_argument("--retries", type=int, default=20, help="how often Ray starts a task again whose node was lost")
    parser.add_argument("--poll", type=float, default=2, help="seconds between two looks at the queue")
    parser.add_argument("--until-empty", action="store_true", help="end when no task is left")
    args = parser.parse_args()
    ray.init(address=args.address, log_to_driver=False)
    resources = {"num_cpus": args.cpus, "num_gpus": args.gpus, "max_retries": args.retries, "retry_exceptions": [NotEnded]}
    if args.memory_gb:
        resources["memory"] = int(args.memory_gb * 2**30)
    remote = ray.remote(**resources)(run_task)
    running, ended = {}, {}
    while True:
        try:
            # What a worker would take now: also scheduled tasks whose time has come, and tasks of lost workers.
            ready = [task["id"] for task in list_tasks(args.haft, args.label, "ready")]
            is_done = args.until_empty and not running and not ready and not has_tasks_to_come(args.haft, args.label)
        except RuntimeError as error:
            # The database is away; the tasks that run go on.
            print(error, file=sys.stderr, flush=True)
            ready, is_done = [], False
        if is_done:
            break
        known = set(running.values())
        for number in ready:
            if number not in known:
                running[remote.remote(args.haft, args.worker_option, number)] = number
        if not running:
            time.sleep(args.poll)
            continue
        for one in ray.wait(list(running), num_returns=len(running), timeout=args.poll)[0]:
            number = running.pop(one)
            try:
                ended[number] = ray.get(one)
                print(f"{number}: {ended[number]}", flush=True)
            except (ray.exceptions.RayError, NotEnded) as error:
                # The task stays in the queue and is found there again.
                print(f"{number}: {error}", file=sys.stderr, flush=True)
    sys.exit(0 if all(status == "completed" for status in ended.values()) else 1)


if __name__ == "__main__":
    main()
