# The types of sync.py, made of those of the package by `scripts/clients write`; write there, and not here.
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Union
from .client import Command, Handler, Patched
from .files import BLOCK, Entry, Metadata, Walk
from .layers import Applied, Change, Changes, Diff, What
from .process import OUTPUT_MAX, Data, Event, Exited, Result
from .questions import Asked
from .sandbox import AnySandbox, Path
from .sessions import Answer, Screen, Until
from typing import Callable

AnyLayer = Union["Layer", str, None]

class Client:
    """A connection, made by connect() or spawn(); `async with` closes it."""

    session_id: str
    info: Dict[str, Any]
    sandbox: AnySandbox
    on_question: Optional[Asked]
    files: Files
    sessions: Sessions
    layers: Layers
    handlers: Dict[str, Handler]
    on_event: Optional[Callable[[str, Dict[str, Any]], None]]

    def close(self) -> None:
        """Ends the connection. What runs goes on for as long as the server keeps the session; a server of
        our own ends with all that it runs."""
        ...

    def call(self, method: str, params: Optional[Mapping[str, Any]]=None, *, timeout: Optional[float]=None) -> Dict[str, Any]:
        """Any method of the protocol (docs/protocol.md); the result. RpcError for an error, TimedOut after
        `timeout` seconds without an answer, when nobody knows whether it was carried out."""
        ...

    def run(self, argv: Command, cwd: Optional[Path]=None, *, input: Optional[Data]=None, timeout: Optional[float]=None, check: bool=False, max_output: int=OUTPUT_MAX, env: Optional[Mapping[str, str]]=None, extra_env: Optional[Mapping[str, str]]=None, sandbox: AnySandbox=None, layer: AnyLayer=None, **more: Any) -> Result:
        """Runs a command to its end. After `timeout` seconds it is ended, and TimedOut has what it wrote;
        so it is when the call is cancelled. `check`: CommandFailed if it does not end with 0. Of each
        stream the first `max_output` bytes are kept. The rest as of start()."""
        ...

    def start(self, argv: Command, cwd: Optional[Path]=None, *, env: Optional[Mapping[str, str]]=None, extra_env: Optional[Mapping[str, str]]=None, sandbox: AnySandbox=None, tty: bool=False, stdin: bool=False, arg0: Optional[str]=None, size: Optional[tuple[int, int]]=None, process_id: Optional[str]=None, trace: Sequence[str]=(), layer: AnyLayer=None, **more: Any) -> Process:
        """Starts a command: a program with its arguments, or a text for `sh -c`. `cwd` is by default the
        server's own folder. `env` None: the server's environment without secrets, and `extra_env`;
        otherwise exactly that. `sandbox` None: that of the client, else what the configuration of the
        server's user says, else workspace-write; only "none" is no sandbox. `stdin`: write() is wanted.
        `size`: (rows, columns) of the terminal that `tty` gives. `trace`: what timeline() tells, of
        "files", "network" and "exec". `layer`: a change layer that takes what it writes. `more` are further
        fields of process/start (docs/protocol.md), such as maxMemoryBytes=1 << 30; what is none is a
        TypeError."""
        ...

    def take_up(self, process_id: str) -> Process:
        """A process of this session that another client started (connect(resume=...)), with what is
        retained of its output."""
        ...

    def patch(self, patch: str, cwd: Optional[Path]=None, *, sandbox: AnySandbox=None, task: str='apply', layer: AnyLayer=None) -> Patched:
        """Applies a patch in the apply_patch grammar below a folder, all of it or nothing. `task`: "check"
        and "diff" change nothing. `layer`: in place of the real files, those of a change layer."""
        ...

    def explain(self, argv: Optional[Sequence[str]]=None, cwd: Optional[Path]=None, *, path: Optional[Path]=None, access: str='read', host: Optional[str]=None, sandbox: AnySandbox=None) -> Dict[str, Any]:
        """What a sandbox lets a command do, and who decided it, as `cordon explain --json` says it: of one
        `path` (to "read" or "write"), of one `host` (HOST or HOST:PORT), of a command, which is not run, or
        of everything."""
        ...

    def timeline(self, process_id: str, after: int=0) -> Iterator[Dict[str, Any]]:
        """What a process did that was started with `trace`, event by event until it is closed
        (docs/timeline.md); Answer.process_id names that of a session. Any number of readers. What was not
        kept until it was read is one {"event": "lost", "count": N}."""
        ...

    def __enter__(self) -> Client: ...
    def __exit__(self, *_: object) -> None: ...

def connect(url: str, *, token: Optional[str]=None, name: str='cordon-client', reconnect_for: float=45.0, resume: Optional[str]=None, timeout: float=30.0, sandbox: AnySandbox=None, on_question: Optional[Asked]=None) -> Client:
    """Connects to ws://HOST:PORT, wss://HOST:PORT or unix:PATH, within `timeout` seconds.

    A connection that is lost is made anew for `reconnect_for` seconds (0: not at all): the session goes on, and
    the output of the time in between is fetched, so that events come once and in order, or a Gap says how
    much is gone. Calls that were on their way raise Disconnected; Process.write() is repeated and still
    written once. The server keeps a session for 80 s: `resume` and Client.take_up() go on with it in another
    program.

    `token` is sent; without one, a server at a loopback address has to know the user's own
    token, if there is one, which is shown to be known and never sent; "" is for a server that does not.

    `sandbox` is what calls have that say none. `on_question` answers what the server asks (a Question):
    then what a sandbox refuses waits for the answer, if the sandbox says no other `watch`."""
    ...

def spawn(argv: Optional[Sequence[str]]=None, *, name: str='cordon-client', timeout: float=30.0, sandbox: AnySandbox=None, on_question: Optional[Asked]=None) -> Client:
    """Starts a server of our own, which ends with the client: that of the `cordon` in this package or on
    the PATH, or any other command that serves on its standard input and output. The rest as of
    connect()."""
    ...

def run(argv: Command, cwd: Optional[Path]=None, *, sandbox: AnySandbox=None, on_question: Optional[Asked]=None, **more: Any) -> Result:
    """Client.run() of a server that is started for this one command."""
    ...

class Process:
    """A running command, made by Client.start(). `async with` ends it at the end of the block, with all that
    it started; `async for` gives its events."""

    id: str
    sandbox_type: str
    warnings: List[str]
    exit: Optional[Exited]
    is_closed: bool

    def events(self) -> Iterator[Event]:
        """Everything that happens, in order, until it is closed. For one reader."""
        ...

    def output(self, stream: Optional[str]=None) -> Iterator[bytes]:
        """The bytes of "stdout", "stderr" or both, as they come. For one reader, as events()."""
        ...

    def lines(self, stream: Optional[str]=None) -> Iterator[str]:
        """Whole lines of "stdout", "stderr" or both, without their ends, as text; what is no UTF-8 is
        replaced, and a line of more than 1 MiB comes in pieces. For one reader, as events(); a loop that was
        left may be begun again, with the next line."""
        ...

    def timeline(self, after: int=0) -> Iterator[Dict[str, Any]]:
        """Client.timeline() of this process."""
        ...

    def communicate(self, data: Optional[Data]=None, *, max_output: int=OUTPUT_MAX) -> Result:
        """Writes `data` and ends the input, and collects output until it is closed: of each stream the
        first `max_output` bytes."""
        ...

    def wait(self) -> Exited:
        """How the command ended. Its output may go on, if it left something behind."""
        ...

    def write(self, data: Data) -> None:
        """Sends input: of a terminal, or of one that was started with `stdin`; InputClosed when it takes
        none. Written once, also when the connection is lost meanwhile."""
        ...

    def close_stdin(self) -> bool:
        """Ends its input. False: it had none, or it was closed before."""
        ...

    def interrupt(self) -> None:
        """SIGINT, as by Ctrl-C."""
        ...

    def terminate(self, grace: float=0) -> bool:
        """Ends it with all that it started; after SIGTERM and `grace` seconds if there are any. Returns
        whether it was still running."""
        ...

    def resize(self, rows: int, columns: int) -> None:
        """Of its terminal."""
        ...

    def __enter__(self) -> Process: ...
    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Event]: ...

class Sessions:
    """Client.sessions: by number, as the tools of a model have them, or as a Session by start(). Times are
    seconds."""


    def exec(self, cmd: str, cwd: Optional[Path]=None, *, sandbox: AnySandbox=None, tty: bool=False, stdin: bool=False, input: Optional[str]=None, screen: bool=False, yield_time: Optional[float]=None, max_output_tokens: Optional[int]=None, env: Optional[Mapping[str, str]]=None, shell: Optional[str]=None, login: bool=True, until: Optional[Until]=None, trace: Sequence[str]=(), layer: AnyLayer=None) -> Answer:
        """Runs shell text until it ends, the time is up (10 seconds), or what `until` says has come. A
        command that goes on is a session with a number, also when the call is cancelled: then nothing of
        its output is lost. `input` is its whole input; with `stdin` it has one for write(). `env` is laid over the server's environment
        without secrets; `trace` and `layer` as of Client.start()."""
        ...

    def start(self, cmd: str, cwd: Optional[Path]=None, *, sandbox: AnySandbox=None, tty: bool=True, stdin: bool=False, screen: bool=True, yield_time: Optional[float]=None, max_output_tokens: Optional[int]=None, env: Optional[Mapping[str, str]]=None, shell: Optional[str]=None, login: bool=True, until: Optional[Until]=None, trace: Sequence[str]=(), layer: AnyLayer=None) -> Session:
        """As exec(), on a terminal that can be looked at; `async with` ends the session at the end of the
        block."""
        ...

    def write(self, session_id: int, chars: str='', *, close: bool=False, yield_time: Optional[float]=None, max_output_tokens: Optional[int]=None, until: Optional[Until]=None) -> Answer:
        """Sends characters (U+0003 alone interrupts), or none, and waits a little for what comes; `close`
        ends the input behind them."""
        ...

    def wait(self, session_id: int, *, yield_time: Optional[float]=None, max_output_tokens: Optional[int]=None, until: Optional[Until]=None) -> Answer:
        """Waits for its end, or for what `until` says; at most 300 seconds."""
        ...

    def terminate(self, session_id: int, grace: Optional[float]=None) -> Answer:
        """Ends it with all that it started, `grace` seconds (2) after SIGTERM; its last output."""
        ...

    def screen(self, session_id: int, scrollback: int=0) -> Screen:
        """What its terminal shows, behind `scrollback` lines that went off at the top. Needs `screen` at
        its start."""
        ...

    def list(self) -> List[Dict[str, Any]]:
        """Those whose commands still run."""
        ...

class Session:
    """One command of a model, made by Sessions.start(). `answer` is the newest; `async for` gives this
    one and all that come until the end."""

    answer: Answer

    @property
    def is_running(self) -> bool:
        """As far as the newest answer tells."""
        ...

    def write(self, chars: str='', *, close: bool=False, yield_time: Optional[float]=None, max_output_tokens: Optional[int]=None, until: Optional[Until]=None) -> Answer:
        """As Sessions.write()."""
        ...

    def wait(self, *, yield_time: Optional[float]=None, max_output_tokens: Optional[int]=None, until: Optional[Until]=None) -> Answer:
        """As Sessions.wait(); when it has ended, the last answer again."""
        ...

    def screen(self, scrollback: int=0) -> Screen:
        """As Sessions.screen()."""
        ...

    def terminate(self, grace: Optional[float]=None) -> Answer:
        """As Sessions.terminate(); when it has ended, the last answer again."""
        ...

    def __enter__(self) -> Session: ...
    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Answer]: ...

class Files:
    """Client.files, and what Files.inside() gives."""


    def inside(self, sandbox: AnySandbox=None, follow_symlinks: bool=True, *, layer: AnyLayer=None) -> Files:
        """The same, carried out in a sandbox, or in a change layer; without `follow_symlinks` paths with links in
        them are refused."""
        ...

    def read(self, path: Path) -> bytes:
        """The whole file."""
        ...

    def write(self, path: Path, data: Data) -> None:
        """The whole file, which is made or replaced."""
        ...

    def make_directory(self, path: Path, parents: bool=True) -> None:
        """Makes a folder; with `parents` also those above it, and it may be there."""
        ...

    def metadata(self, path: Path) -> Metadata:
        """What is known of a name."""
        ...

    def real_path(self, path: Path) -> str:
        """The path without links and dots."""
        ...

    def list(self, path: Path) -> List[Entry]:
        """What is in a folder."""
        ...

    def walk(self, path: Path, max_depth: int=64, max_directories: int=10000, max_entries: int=50000, *, follow_links: bool=False, prune_hidden: bool=False) -> Walk:
        """All that is below a folder, within limits."""
        ...

    def remove(self, path: Path, recursive: bool=True, *, missing_ok: bool=True) -> None:
        """A file, or a folder with all that is in it."""
        ...

    def copy(self, source: Path, destination: Path, recursive: bool=False) -> None:
        """A file, or with `recursive` a folder."""
        ...

    def open(self, path: Path, mode: str='read') -> Handle:
        """`mode`: "read", or "replace" to make or empty it for writing."""
        ...

    def wait_for(self, missing: Sequence[Path]) -> bool:
        """Waits until one of the paths, which are not there, may have appeared. False at once: the
        server cannot watch them, or something is there already."""
        ...

class Handle:
    """An open file, made by Files.open(). Ends with the connection."""


    def read(self, offset: int, size: int=BLOCK) -> bytes:
        """At most 1 MiB; b"" at the end."""
        ...

    def write(self, offset: int, data: bytes) -> None:
        """At a place."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...

    def __enter__(self) -> Handle: ...
    def __exit__(self, *_: object) -> None: ...

class Layers:
    """Client.layers."""


    def open(self, name: Optional[str]=None, cwd: Optional[Path]=None, *, sandbox: AnySandbox=None, direct: Sequence[Path]=(), git: bool=False, max_bytes: int=0) -> Layer:
        """The layer of this name, or id, which is made if there is none; without a name a new one. It lies over what a
        sandbox lets commands in `cwd` write, and what is run in it has that sandbox and workspace when it says none. `direct`: folders that are left
        out. `git`: git may commit in it. `async with` lets go of it at the end of the block; it stays on the disk."""
        ...

    def list(self, cwd: Optional[Path]=None, *, sizes: bool=False) -> List[Dict[str, Any]]:
        """All layers of the server's user, or those that lie over a folder, as layer/list tells them; the one used last
        comes first. `sizes`: with what they take up."""
        ...

class Layer:
    """A change layer, made by Layers.open()."""

    id: str
    name: Optional[str]
    roots: List[str]
    warnings: List[str]

    def changes(self, paths: Optional[Sequence[Path]]=None, *, step: Optional[int]=None) -> Changes:
        """What it would change: all, or of these paths and what lies below them; or what one step changed, against what was
        there before. Also while commands run in it."""
        ...

    def diff(self, path: Union[Path, Change], *, step: Optional[int]=None, context: int=3, max_bytes: int=1 << 20) -> Diff:
        """How one path differs from the real one, with so many lines around each difference."""
        ...

    def read(self, path: Union[Path, Change], side: Literal['layer', 'real']='layer') -> bytes:
        """What is in a changed file, or what was; of a link its text."""
        ...

    def accept(self, what: What=None, *, all: bool=False, force: bool=False, marked: bool=False, dry_run: bool=False) -> Applied:
        """Takes changes into the real files; what was there is kept for undo(). What was changed outside meanwhile is left,
        but for `force`; and of what is marked only what is named by its own path, but for `marked`."""
        ...

    def accept_text(self, what: Union[Path, Change], text: str) -> Applied:
        """Takes this text in place of a changed file's: a part of its differences. The rest stays in the layer."""
        ...

    def drop(self, what: What=None, *, all: bool=False, step: Optional[int]=None, dry_run: bool=False) -> Applied:
        """Throws changes away, for good; or what one step wrote. While no command runs in it."""
        ...

    def undo(self, accept_id: Optional[int]=None, paths: Optional[Sequence[Path]]=None, *, force: bool=False, dry_run: bool=False) -> Applied:
        """Takes back what accept() did, the last time by default: the real files are what they were, and the changes in the
        layer again. What somebody changed since is left."""
        ...

    def refresh(self) -> bool:
        """Lets commands that run in it see what others changed in the real files meanwhile. Whether any does."""
        ...

    def info(self) -> Dict[str, Any]:
        """Its state, its steps and what was accepted, as layer/info tells it."""
        ...

    def close(self, *, keep: bool=True) -> None:
        """The server lets go of it, so that others can have it: at once, or when what runs in it has ended. Without `keep` it
        is removed, with all that is in it."""
        ...

    def __enter__(self) -> Layer: ...
    def __exit__(self, *_: object) -> None: ...
