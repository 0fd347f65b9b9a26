"""A shard of a night as `fleet submit` writes it, by stand-ins for Slurm's programs."""
import glob, json, os, subprocess


def stand_ins(folder):
    """Programs that take every job and know of none."""
    os.mkdir(folder)
    for program, says in ("sbatch", "echo 7"), ("squeue", ":"), ("scancel", ":"), ("scontrol", ":"):
        with open(f"{folder}/{program}", "w") as f:
            f.write(f"#!/bin/sh\n{says}\n")
        os.chmod(f"{folder}/{program}", 0o755)


def fleet(folder, model, **more):
    """fleet.json of one kind of machine."""
    kind = dict(partition="p", layouts=["plain"], backends=["onednn"], peaks=False, **more)
    return dict(folder=folder, models=[os.path.abspath(model)], systems=dict(k=kind))


def make_shard(benanza, work, model, **more):
    """The shard's folder; PATH needs the stand-ins."""
    with open(work + "/shards.json", "w") as f:
        json.dump(fleet(work + "/shards", model, **more), f)
    subprocess.run([benanza, "fleet", "submit", "--config", work + "/shards.json", "--db", work + "/none"], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, PATH=f"{work}/slurm:" + os.environ["PATH"]))
    return glob.glob(work + "/shards/*/k/1-000")[0]
