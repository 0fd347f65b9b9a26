"""A Slurm of its own for tests: munged, slurmctld and a slurmd for each node, by hand, on the loopback, in a temporary
folder. Nothing of it stays. Works as root in a container; needs the packages slurm-wlm and munge."""
import os, shutil, signal, socket, subprocess, sys, threading, time

CONF = """ClusterName=benanza
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={work}/munge.sock
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool-%n
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd-%n.pid
SlurmctldLogFile={work}/slurmctld.log
SlurmdLogFile={work}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=6
KillWait=5
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=1
"""


def skip(why):
    print(f"fleet: skipped: {why}")
    sys.exit(77)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    """partitions: {"gpu": ["n1", "n2"]}"""

    def __init__(self, work, partitions):
        for program in ["munged", "slurmctld", "slurmd", "sbatch", "squeue"]:
            if not find(program):
                skip(f"there is no {program} (packages slurm-wlm and munge)")
        self.work, self.children, self.nodes = work, {}, []
        os.mkdir(work)
        os.mkdir(f"{work}/state")
        user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
        host = subprocess.run(["hostname", "-s"], capture_output=True, text=True).stdout.strip()
        text = CONF.format(host=host, user=user, port=free_port(), work=work)
        for nodes in partitions.values():
            self.nodes += [n for n in nodes if n not in self.nodes]
        for n in self.nodes:
            text += f"NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1\n"
        for name, nodes in partitions.items():
            text += f"PartitionName={name} Nodes={','.join(nodes)} State=UP\n"
        self.conf = f"{work}/slurm.conf"
        with open(self.conf, "w") as f:
            f.write(text)
        os.environ["SLURM_CONF"] = self.conf

    def start(self):
        work = self.work
        with open(f"{work}/munge.key", "wb") as f:
            f.write(os.urandom(128))
        os.chmod(f"{work}/munge.key", 0o400)
        self.spawn("munged", "--force", "-F", f"--key-file={work}/munge.key", f"--socket={work}/munge.sock",
                   f"--pid-file={work}/munge.pid", f"--seed-file={work}/munge.seed")
        wait(lambda: os.path.exists(f"{work}/munge.sock"), 10) or skip(f"munged does not start: {self.said('munged')}")
        self.spawn("slurmctld", "-D", "-f", self.conf)
        for n in self.nodes:
            self.start_node(n)
        if not wait(lambda: self.states().count("idle") == len(self.nodes), 30):
            skip(f"the nodes do not come up: {self.states()} {self.said('slurmctld')} {self.said('slurmd-' + n)}")

        threading.Thread(target=self.hurry, daemon=True).start()

    def hurry(self):
        """A job that is queued again waits for two minutes, until nobody can hold credentials of its first start. Here
        for two seconds: their age counts in whole ones, and a node refuses those of the second in which it revoked them."""
        since = {}
        while "slurmctld" in self.children:
            r = subprocess.run(["squeue", "-h", "-r", "-t", "PD", "-o", "%A %r"], capture_output=True, text=True)
            waiting = [l.split(" ")[0] for l in r.stdout.splitlines() if l.endswith(" BeginTime")]
            since = {job: since.get(job, time.monotonic()) for job in waiting}
            for job in waiting:
                if time.monotonic() - since[job] > 2:
                    subprocess.run(["scontrol", "update", f"jobid={job}", "starttime=now"], capture_output=True)
            time.sleep(0.5)

    def open_partition(self, name, up):
        subprocess.run(["scontrol", "update", f"partitionname={name}", "state=" + ("up" if up else "down")], check=True)

    def start_node(self, n):
        self.spawn("slurmd", "-D", "-f", self.conf, "-N", n, name=f"slurmd-{n}")

    def spawn(self, program, *args, name=None):
        name = name or program
        out = open(f"{self.work}/{name}.out", "w")
        self.children[name] = subprocess.Popen([find(program), *args], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                               start_new_session=True)

    def said(self, name):
        with open(f"{self.work}/{name}.out") as f:
            return f.read()[-300:].replace("\n", " | ")

    def states(self):
        r = subprocess.run(["sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, text=True)
        return [state for node, state in sorted(set(tuple(l.split()) for l in r.stdout.splitlines() if " " in l))]

    def queue(self, name=None):
        """Of the tasks that are queued: (job, task, state, node)."""
        r = subprocess.run(["squeue", "-h", "-r", "-o", "%F %K %t %N"] + (["-n", name] if name else []),
                           capture_output=True, text=True)
        return [tuple((l + " ").split(" ")[:4]) for l in r.stdout.splitlines()]

    def lose_node(self, n):
        """As if somebody pulled its plug: the daemon, and all that runs there."""
        child = self.children.pop(f"slurmd-{n}")
        child.kill()
        child.wait()
        for pid in self.processes(f"SLURMD_NODENAME={n}"):
            kill(pid)
        for pid in self.processes("", f"slurmstepd"):
            if n in command_line(pid):
                kill(pid)

    def processes(self, variable, name=None):
        """Numbers of the processes of this Slurm, told by their environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    environ = f.read().split(b"\0")
            except OSError:
                continue
            if f"SLURM_CONF={self.conf}".encode() not in environ or int(pid) == os.getpid():
                continue
            if (not variable or variable.encode() in environ) and (not name or name in command_line(pid)):
                found.append(int(pid))
        return found

    def stop(self):
        if "slurmctld" in self.children:
            subprocess.run(["scancel", "--me"], capture_output=True)
            wait(lambda: not self.queue(), 5)
        children = list(self.children.values())
        self.children = {}
        for child in children:
            child.terminate()
        for child in children:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for pid in self.processes(""):
            kill(pid)


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin")


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill(pid):
    """Whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True


def wait(condition, seconds, every=0.1):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(every)
    return condition()
